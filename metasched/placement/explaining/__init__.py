"""Why a placement is as it is: its terms one by one, what a change would do, and both as documents."""
