package fleet

import (
	"os"
	"testing"

	"github.com/landfall-hub/landfall/hub/engine/enginetest"
)

func TestMain(m *testing.M) { os.Exit(enginetest.Main(m)) }
