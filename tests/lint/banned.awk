# banned.awk BANNED FILE...: calls of banned words, comments by //, and notes of unfinished work.
# A line with NOLINT and its reason is left out.
# Strings, characters and comments are taken out first.
function trim(text) { gsub(/^[ \t]+|[ \t]+$/, "", text); return text }
function complain(text) { print FILENAME ":" FNR ": " text; bad = 1 }

function exempt(word,   i, n, where) {
	n = split(allowed[word], where, " ")
	for (i = 1; i <= n; i++)
		if (index(FILENAME, where[i]) == 1)
			return 1
	return 0
}

# The code of a line; a comment that goes on is remembered in `inside`.
function code_of(line,   out, m) {
	out = ""
	while (line != "") {
		if (inside) {
			if (!(m = index(line, "*/")))
				return out
			inside = 0
			line = substr(line, m + 2)
		} else if (match(line, /"([^"\\]|\\.)*"|'([^'\\]|\\.)+'|\/\*|\/\//)) {
			m = substr(line, RSTART, RLENGTH)
			out = out substr(line, 1, RSTART - 1) " "
			line = substr(line, RSTART + RLENGTH)
			if (m == "//") {
				complain("comments are /* */")
				return out
			}
			inside = m == "/*"
		} else
			return out line
	}
	return out
}

FNR == NR {
	if (split($0, part, /\|/) >= 2 && $0 !~ /^#/) {
		word = trim(part[1])
		instead[word] = trim(part[2])
		allowed[word] = trim(part[3])
		delete part
	}
	next
}
FNR == 1 { inside = 0 }
/TODO|FIXME/ { complain("unfinished work belongs into an issue") }
{
	rest = code_of($0)
	if (/NOLINT/)
		next
	while (match(rest, /[A-Za-z_][A-Za-z0-9_]*[ \t]*\(/)) {
		before = RSTART > 1 ? substr(rest, 1, RSTART - 1) : ""
		word = substr(rest, RSTART, RLENGTH)
		rest = substr(rest, RSTART + RLENGTH)
		sub(/[ \t]*\($/, "", word)
		# A member of that name (x->select(), .pipe = ) is something else.
		if (word in instead && before !~ /(->|\.)[ \t]*$/ && !exempt(word))
			complain(word ": use " instead[word])
	}
}
END { exit bad }
