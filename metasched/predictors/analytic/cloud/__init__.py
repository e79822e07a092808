"""MPI applications on cloud servers, bare metal or virtual: time against processes for any distribution of them.

After Saad and El-Mahdy, HPCCloud Seer: a performance model based predictor for parallel applications on the cloud, IEEE
Access 8, 2020. Data flow: profiles -> workload, hardware -> servers, both -> network -> time.
"""
