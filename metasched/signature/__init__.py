"""Signatures of message-passing applications: phases and weights of small runs, rules in n, scaled traces, predictions.

After P3S (Panadero, Wong, Rexachs and Luque, *IEEE Transactions on Parallel and Distributed Systems* 29(3), 2018).
"""
