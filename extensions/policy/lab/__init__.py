"""The lab: the real policies against models of servers, in virtual time and without I/O."""
