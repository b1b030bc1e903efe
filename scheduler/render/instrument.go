package render

import (
	"strings"
	"text/template"
	"text/template/parse"
)

// known are the names that templates may call, for the parser.
var known = knownNames()

func knownNames() map[string]any {
	names := make(map[string]any, len(library)+len(builtins))
	for name := range library {
		names[name] = true
	}
	for _, name := range builtins {
		names[name] = true
	}
	for _, name := range []string{"html", "js", "urlquery"} { // of text/template, metered by their values
		names[name] = true
	}
	return names
}

// program is a template that is ready to run on an engine.
type program struct {
	tmpl *template.Template
	// mutates says that it may write into what it is given.
	mutates bool
}

// compile parses a text and puts the tolls into its trees.
func (e *engine) compile(name, text string) (*program, error) {
	trees, err := parse.Parse(name, text, "", "", known)
	if err != nil {
		return nil, err
	}
	p := &program{tmpl: template.New(name)}
	funcs := template.FuncMap{
		fnStep: e.funcs[fnStep], fnEnter: e.funcs[fnEnter], fnLeave: e.funcs[fnLeave], fnUse: e.funcs[fnUse],
		fnRange: e.funcs[fnRange], fnPrint: e.funcs[fnPrint],
	}
	for _, tree := range trees {
		if tree.Root == nil {
			continue
		}
		i := instrument{tree: tree, called: func(name string) {
			if _, ok := library[name]; ok {
				funcs[name] = e.function(name)
			}
			p.mutates = p.mutates || mutating[name]
		}}
		n := i.list(tree.Root)
		first := i.action(fnEnter, i.number(n))
		tree.Root.Nodes = append(append([]parse.Node{first}, tree.Root.Nodes...), i.action(fnLeave))
	}
	p.tmpl.Funcs(funcs)
	for name, tree := range trees {
		if _, err := p.tmpl.AddParseTree(name, tree); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// instrument puts tolls into the tree of a template: what loops, calls, prints
// or compares says so to the meter.
type instrument struct {
	tree   *parse.Tree
	pos    parse.Pos
	called func(function string)
}

// list works through a list of nodes and returns how many there are below it.
func (i *instrument) list(l *parse.ListNode) int {
	if l == nil {
		return 0
	}
	n := 1
	for _, node := range l.Nodes {
		n += i.node(node)
	}
	return n
}

func (i *instrument) node(node parse.Node) int {
	i.pos = node.Position()
	switch node := node.(type) {
	case *parse.ActionNode:
		what := node.Pipe.String()
		n := i.pipe(node.Pipe)
		if len(node.Pipe.Decl) == 0 {
			i.then(node.Pipe, fnPrint, &parse.StringNode{NodeType: parse.NodeString, Pos: i.pos, Quoted: "_", Text: what})
		}
		return n
	case *parse.IfNode:
		return i.branch(&node.BranchNode)
	case *parse.WithNode:
		return i.branch(&node.BranchNode)
	case *parse.RangeNode:
		n := i.branch(&node.BranchNode)
		i.then(node.Pipe, fnRange)
		node.List.Nodes = append([]parse.Node{i.action(fnStep, i.number(n))}, node.List.Nodes...)
		return n
	case *parse.TemplateNode:
		return i.pipe(node.Pipe)
	}
	return 1
}

func (i *instrument) branch(b *parse.BranchNode) int {
	return i.pipe(b.Pipe) + i.list(b.List) + i.list(b.ElseList)
}

// pipe works through a pipeline. The arguments of comparisons are weighed: they
// are the only built-in functions whose work depends on them.
func (i *instrument) pipe(p *parse.PipeNode) int {
	if p == nil {
		return 1
	}
	n := 1
	for _, c := range p.Cmds {
		weighed := false
		for k, arg := range c.Args {
			n++
			switch arg := arg.(type) {
			case *parse.IdentifierNode:
				i.called(arg.Ident)
				if k == 0 {
					weighed = weighsArguments[arg.Ident]
				}
			case *parse.PipeNode:
				n += i.pipe(arg)
			case *parse.ChainNode:
				if inner, ok := arg.Node.(*parse.PipeNode); ok {
					n += i.pipe(inner)
				}
			}
			if weighed && k > 0 {
				c.Args[k] = i.weighed(arg)
			}
		}
	}
	// What is piped into a comparison is its last argument.
	for k := len(p.Cmds) - 1; k > 0; k-- {
		if id, ok := p.Cmds[k].Args[0].(*parse.IdentifierNode); ok && weighsArguments[id.Ident] {
			p.Cmds = append(p.Cmds[:k], append([]*parse.CommandNode{i.command(fnUse)}, p.Cmds[k:]...)...)
		}
	}
	return n
}

// weighsArguments are the functions of text/template that look at the whole of
// their arguments.
var weighsArguments = map[string]bool{
	"eq": true, "ne": true, "lt": true, "le": true, "gt": true, "ge": true, "html": true, "js": true, "urlquery": true,
}

// weighed wraps an argument that is not a literal.
func (i *instrument) weighed(arg parse.Node) parse.Node {
	switch arg.Type() {
	case parse.NodeNumber, parse.NodeBool, parse.NodeString, parse.NodeNil:
		return arg
	}
	c := i.command(fnUse)
	c.Args = append(c.Args, arg)
	return &parse.PipeNode{NodeType: parse.NodePipe, Pos: arg.Position(), Cmds: []*parse.CommandNode{c}}
}

// then pipes what a pipeline gives into one of our functions.
func (i *instrument) then(p *parse.PipeNode, fn string, args ...parse.Node) {
	p.Cmds = append(p.Cmds, i.command(fn, args...))
}

func (i *instrument) action(fn string, args ...parse.Node) *parse.ActionNode {
	return &parse.ActionNode{NodeType: parse.NodeAction, Pos: i.pos, Pipe: &parse.PipeNode{
		NodeType: parse.NodePipe, Pos: i.pos, Cmds: []*parse.CommandNode{i.command(fn, args...)},
	}}
}

func (i *instrument) command(fn string, args ...parse.Node) *parse.CommandNode {
	id := parse.NewIdentifier(fn).SetPos(i.pos).SetTree(i.tree)
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: i.pos, Args: append([]parse.Node{id}, args...)}
}

func (i *instrument) number(n int) *parse.NumberNode {
	return &parse.NumberNode{NodeType: parse.NodeNumber, Pos: i.pos, IsInt: true, Int64: int64(n), Text: "0"}
}

// plainly takes our functions out of what text/template says about a template.
func plainly(message string) string {
	for _, fn := range []string{fnUse, fnRange, fnPrint, fnStep, fnEnter, fnLeave} {
		message = strings.ReplaceAll(message, " | "+fn+" _", "")
		message = strings.ReplaceAll(message, " | "+fn, "")
		message = strings.ReplaceAll(message, fn+" ", "")
	}
	return message
}
