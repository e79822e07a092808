"""SPMD applications that alternate computation, communication and I/O, on p processors and d disks.

After Cremonesi and Gennaro, Integrated performance models for SPMD applications and MIMD architectures, IEEE TPDS
13(12), 2002. Data flow: application -> bursts -> synchronous, bus or clustered -> surface, and from an observed surface
back to the application through fitting.
"""
