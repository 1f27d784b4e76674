# layers.awk LAYERS FILE...: checks every #include against the table (whose head says how to read it).
function folder(path) { return sub(/\/[^\/]*$/, "", path) ? path : "." }
function may(from, to) { return index(rule[from], " " to " ") > 0 }

FNR == NR {
	sub(/#.*/, "")
	if (split($0, part, /:/) == 2) {
		gsub(/[ \t]+/, " ", part[2])
		rule[part[1]] = " " part[2] " "
	}
	next
}
FNR == 1 {
	dir = folder(FILENAME)
	at = (FILENAME in rule) ? FILENAME : dir
	if (!(at in rule)) {
		print FILENAME ": folder missing in layers.txt"
		bad = 1
	}
}
/^#[ \t]*include[ \t]*"/ {
	split($0, quoted, "\"")
	to = quoted[2]
	check(to, folder(to) == dir || may(at, folder(to)) || may(at, to))
}
/^#[ \t]*include[ \t]*</ {
	match($0, /<[^>]*>/)
	to = substr($0, RSTART, RLENGTH)
	check(to, !(to in rule) || may(to, dir) || may(to, FILENAME))
}
function check(to, ok) {
	if (!ok) {
		print FILENAME ":" FNR ": " at " may not include " to
		bad = 1
	}
}
END { exit bad }
