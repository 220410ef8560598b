"""The operator to scaffold: its overloads with their schemas, what kind of kernel they take, which OpInfos call it."""
