# To be dropped when Skillbook.Command is there.
defmodule Skillbook.Command do
  @moduledoc false
  defstruct [:name, :raw, flags: %{}, args: [], help: false]

  def parse!(line) do
    [name | words] = OptionParser.split(line)
    {args, flags} = Enum.split_while(words, &(not String.starts_with?(&1, "--")))

    flags =
      flags
      |> Enum.chunk_while(
        [],
        fn
          "--" <> _ = flag, [] -> {:cont, [flag]}
          "--" <> _ = flag, acc -> {:cont, Enum.reverse(acc), [flag]}
          word, acc -> {:cont, [word | acc]}
        end,
        fn
          [] -> {:cont, []}
          acc -> {:cont, Enum.reverse(acc), []}
        end
      )
      |> Map.new(fn
        ["--" <> f] -> {f, true}
        ["--" <> f, one] -> {f, one}
        ["--" <> f | many] -> {f, many}
      end)

    %__MODULE__{name: name, raw: line, flags: flags, args: args}
  end
end
