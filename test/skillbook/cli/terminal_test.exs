defmodule Skillbook.CLI.TerminalTest do
  use ExUnit.Case, async: true

  alias Skillbook.CLI.Terminal

  @terminal %Terminal{color: true, width: 80}
  @pipe %Terminal{color: false, width: nil}

  test "the option decides on colours, then the output" do
    assert Terminal.color?(:always, nil)
    refute Terminal.color?(:never, 80)
    refute Terminal.color?(:auto, nil)
  end

  test "a style adds codes only with colours" do
    assert IO.iodata_to_binary(Terminal.style(@terminal, :red, "x")) == "\e[31mx\e[0m"
    assert Terminal.style(@pipe, :red, "x") == "x"
  end

  test "replaces control characters on a terminal only" do
    for {text, shown} <- [
          {"plain\n\ttext é", "plain\n\ttext é"},
          {"\e[2J", "␛[2J"},
          {"a\rb", "a␍b"},
          {"\u007F", "␡"},
          {"\u009B31m", "␡31m"}
        ] do
      assert Terminal.safe(@terminal, text) == shown
      assert Terminal.safe(@pipe, text) == text
    end
  end
end
