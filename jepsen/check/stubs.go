package check

func checkLogs(e *evidence, r *result)              { r.Checked = 1 }
func checkOverAdmissionWall(e *evidence, r *result) { r.Checked = 1 }
func checkRetryAfter(e *evidence, r *result)        { r.Checked = 1 }
func checkLocalDenials(e *evidence, r *result)      { r.Checked = 1 }
func checkPorcupine(e *evidence, r *result)         { r.Checked = 1 }
func checkAvailability(e *evidence, r *result)      { r.Checked = 1 }
