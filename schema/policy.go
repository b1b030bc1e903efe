package schema

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// Policy says when a commit may go on. The zero value is not valid: start from
// DefaultPolicy. Its JSON form is that of a verdict's "policy".
type Policy struct {
	// MinCompliant is the share of the counted reconcilers that must be compliant.
	MinCompliant Percent `json:"min_compliant"`
	// MaxFailures is how many may fail.
	MaxFailures int `json:"max_failures"`
	// Mandatory is a Kubernetes label selector of clusters that must all be compliant; "" is none.
	Mandatory string `json:"mandatory"`
	// ZeroTargets says what too few reconcilers mean.
	ZeroTargets ZeroTargets `json:"zero_targets"`
	// Unknown and Suspended say whether such reconcilers block or are left out.
	Unknown   Treatment `json:"unknown"`
	Suspended Treatment `json:"suspended"`
	// Children says whether what a reconciler made must have succeeded too.
	Children Children `json:"children"`
	// MinSuccessTime is how long all this must have held (the soak).
	MinSuccessTime Duration `json:"min_success_time"`
	// ProgressDeadline is how long the gate waits without progress; it is positive.
	ProgressDeadline Duration `json:"progress_deadline"`
}

// DefaultPolicy is what a question without policy parameters is judged by.
func DefaultPolicy() Policy {
	return Policy{
		MinCompliant:     Percent{num: 100},
		ZeroTargets:      ZeroTargets{n: 1},
		Unknown:          Block,
		Suspended:        Exclude,
		Children:         ChildrenRequire,
		ProgressDeadline: Duration(10 * time.Minute),
	}
}

// Treatment says whether a class of reconcilers counts.
type Treatment string

// The treatments.
const (
	Block   Treatment = "block"
	Exclude Treatment = "exclude"
)

// Children says whether the reconcilers that a subscriber made count.
type Children string

// The values of Children.
const (
	ChildrenRequire Children = "require"
	ChildrenIgnore  Children = "ignore"
)

// Percent is an exact share between 0 % and 100 %, with at most four decimals.
type Percent struct {
	num int64 // of 100 × 10^scale
	// scale is the number of decimals.
	scale int
}

// ParsePercent reads "95%", "95" or "99.5%".
func ParsePercent(s string) (Percent, error) {
	body := strings.TrimSuffix(strings.TrimSpace(s), "%")
	whole, frac, _ := strings.Cut(body, ".")
	frac = strings.TrimRight(frac, "0")
	if len(frac) > 4 {
		return Percent{}, fmt.Errorf("a percentage has at most four decimals, not %q", s)
	}
	if whole == "" || strings.Trim(whole+frac, "0123456789") != "" || len(whole) > 3 {
		return Percent{}, fmt.Errorf("a percentage is written like 95%% or 99.5%%, not %q", s)
	}
	n, err := strconv.ParseInt(whole+frac, 10, 64)
	if err != nil {
		return Percent{}, fmt.Errorf("a percentage is written like 95%%, not %q", s)
	}
	p := Percent{num: n, scale: len(frac)}
	if n > 100*p.pow() {
		return Percent{}, fmt.Errorf("a percentage is at most 100%%, not %q", s)
	}
	return p, nil
}

func (p Percent) pow() int64 {
	f := int64(1)
	for range p.scale {
		f *= 10
	}
	return f
}

// Of returns the smallest whole number that is at least this share of n: no
// floating point decides a gate.
func (p Percent) Of(n int) int {
	den := big.NewInt(100 * p.pow())
	num := new(big.Int).Mul(big.NewInt(p.num), big.NewInt(int64(n)))
	num.Add(num, new(big.Int).Sub(den, big.NewInt(1)))
	return int(num.Div(num, den).Int64())
}

// String returns the percentage as "95%" or "99.5%".
func (p Percent) String() string {
	if p.scale == 0 {
		return strconv.FormatInt(p.num, 10) + "%"
	}
	return fmt.Sprintf("%d.%0*d%%", p.num/p.pow(), p.scale, p.num%p.pow())
}

// MarshalText writes the percentage as String does.
func (p Percent) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads what ParsePercent reads.
func (p *Percent) UnmarshalText(b []byte) error {
	v, err := ParsePercent(string(b))
	if err != nil {
		return err
	}
	*p = v
	return nil
}

// ZeroTargets is `deny` (at least one reconciler), `allow` or `require:N`.
type ZeroTargets struct{ n int }

// ParseZeroTargets reads deny, allow or require:N.
func ParseZeroTargets(s string) (ZeroTargets, error) {
	switch s {
	case "deny":
		return ZeroTargets{n: 1}, nil
	case "allow":
		return ZeroTargets{}, nil
	}
	if digits, ok := strings.CutPrefix(s, "require:"); ok {
		n, err := strconv.Atoi(digits)
		if err == nil && n >= 1 && n <= 1_000_000_000 {
			return ZeroTargets{n: n}, nil
		}
	}
	return ZeroTargets{}, fmt.Errorf("zero_targets is deny, allow or require:N with N of 1 or more, not %q", s)
}

// Least returns how many reconcilers there must be.
func (z ZeroTargets) Least() int { return z.n }

// String returns deny, allow or require:N.
func (z ZeroTargets) String() string {
	switch z.n {
	case 0:
		return "allow"
	case 1:
		return "deny"
	}
	return "require:" + strconv.Itoa(z.n)
}

// MarshalText writes what String returns.
func (z ZeroTargets) MarshalText() ([]byte, error) { return []byte(z.String()), nil }

// UnmarshalText reads what ParseZeroTargets reads.
func (z *ZeroTargets) UnmarshalText(b []byte) error {
	v, err := ParseZeroTargets(string(b))
	if err != nil {
		return err
	}
	*z = v
	return nil
}

// PolicyFields lists the names of the policy's fields, as parameters and JSON
// members have them, in the order of the documents.
func PolicyFields() []string {
	return []string{"min_compliant", "max_failures", "mandatory", "zero_targets", "unknown", "suspended", "children", "min_success_time", "progress_deadline"}
}

// Set changes the field of that name to a value written as in a query
// parameter or a flag. The error says what may be written.
func (p *Policy) Set(field, value string) error {
	switch field {
	case "min_compliant":
		return p.MinCompliant.UnmarshalText([]byte(value))
	case "max_failures":
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 || n > 1_000_000_000 {
			return fmt.Errorf("max_failures is a whole number of 0 or more, not %q", value)
		}
		p.MaxFailures = n
		return nil
	case "mandatory":
		p.Mandatory = value
		return nil
	case "zero_targets":
		return p.ZeroTargets.UnmarshalText([]byte(value))
	case "unknown":
		return setTreatment(&p.Unknown, field, value)
	case "suspended":
		return setTreatment(&p.Suspended, field, value)
	case "children":
		c := Children(value)
		if c != ChildrenRequire && c != ChildrenIgnore {
			return fmt.Errorf("children is require or ignore, not %q", value)
		}
		p.Children = c
		return nil
	case "min_success_time":
		return setDuration(&p.MinSuccessTime, field, value, 0)
	case "progress_deadline":
		return setDuration(&p.ProgressDeadline, field, value, time.Millisecond)
	}
	return fmt.Errorf("the policy has no field %q; it has %s", field, strings.Join(PolicyFields(), ", "))
}

func setTreatment(t *Treatment, field, value string) error {
	v := Treatment(value)
	if v != Block && v != Exclude {
		return fmt.Errorf("%s is block or exclude, not %q", field, value)
	}
	*t = v
	return nil
}

func setDuration(d *Duration, field, value string, least time.Duration) error {
	v, err := time.ParseDuration(value)
	if err != nil || v < least || v > 365*24*time.Hour {
		return fmt.Errorf("%s is a duration like 30s or 10m from %s to a year, not %q", field, Duration(least), value)
	}
	*d = Duration(v)
	return nil
}
