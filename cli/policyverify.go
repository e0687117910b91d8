package cli

func policyVerifyCommand() command { return command{name: "policy verify"} }
