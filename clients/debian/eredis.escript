#!/usr/bin/env escript
%% Drives eredis with its default options (the line protocol: clients/README.md).
%% It has no user names, and sends its password inline.
-mode(compile).

main([Host, Port, _User, Password]) ->
    process_flag(trap_exit, true),
    logger:remove_handler(default), % it writes to stdout
    ok = logger:add_handler(default, logger_std_h, #{config => #{type => standard_error}}),
    serve(fun() -> eredis:start_link(Host, list_to_integer(Port), 0, Password) end, none).

serve(Connect, Client) ->
    case io:get_line("") of
        eof -> ok;
        "quit\n" -> ok;
        Line ->
            [Verb | Words] = string:lexemes(Line, " \n"),
            {Text, Now} = try answer(Verb, Words, connected(Connect, Client))
                          catch throw:Error -> {said({error, Error}), none} end,
            io:put_chars([Text, "\n"]),
            serve(Connect, Now)
    end.

%% start_link fails if the node is away for a moment: the next call asks again.
connected(Connect, none) ->
    case Connect() of {ok, Pid} -> Pid; {error, Error} -> throw(Error) end;
connected(_, Pid) ->
    case is_process_alive(Pid) of true -> Pid; false -> throw(closed) end.

answer("version", _, Client) ->
    application:load(eredis),
    {ok, Version} = application:get_key(eredis, vsn),
    {["ok ", Version], Client};
answer("call", Words, Client) ->
    {said(eredis:q(Client, Words)), Client};
answer("pipe", [N | Words], Client) ->
    case eredis:qp(Client, lists:duplicate(list_to_integer(N), Words)) of
        Replies when is_list(Replies) ->
            Kinds = [kind(Reply) || Reply <- Replies],
            Count = [integer_to_list(length([K || K <- Kinds, K =:= Kind])) || Kind <- [allowed, denied, error]],
            {["ok ", lists:join(" ", Count)], Client};
        Error -> {said(Error), Client}
    end.

kind({ok, [<<"0">>, _, _, _, _]}) -> allowed;
kind({ok, [<<"1">>, _, _, _, _]}) -> denied;
kind(_) -> error.

said({ok, Reply}) when is_list(Reply) -> ["ok ", lists:join(" ", Reply)];
said({ok, Reply}) -> ["ok ", string:trim(Reply)];
said({error, Text}) when is_binary(Text) -> ["err ", string:trim(Text)];
said({error, Reason}) -> ["err ", [case C of $\n -> $\s; _ -> C end || C <- lists:flatten(io_lib:format("~p", [Reason]))]].
