# Prints "passed failed skipped" of a test log: cmocka's, pytest's and our own closing lines, all added up.
# cmocka: "[  PASSED  ] 9 test(s)."   pytest: "== 1 failed, 20 passed, 2 errors in 2.3s =="   ours: "9 passed, 0 failed"
/^\[  PASSED  \] [0-9]+ test/ { passed += $4 }
/^\[  FAILED  \] [0-9]+ test/ { failed += $4 }
/^\[  SKIPPED \] [0-9]+ test/ { skipped += $4 }
/^[0-9]+ passed, [0-9]+ failed/ || /^=* ?[0-9].* in [0-9.]+s/ {
	n = split($0, word, /[ ,=]+/)
	for (i = 2; i <= n; i++) {
		if (word[i] == "passed")
			passed += word[i - 1]
		if (word[i] == "failed" || word[i] ~ /^errors?$/)
			failed += word[i - 1]
		if (word[i] == "skipped")
			skipped += word[i - 1]
	}
}
END { print passed + 0, failed + 0, skipped + 0 }
