"""Tables: what a user gives, read once, and the folds of its rows."""
