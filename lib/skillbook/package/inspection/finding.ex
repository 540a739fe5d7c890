defmodule Skillbook.Package.Inspection.Finding do
  @moduledoc false
  # One finding of `Skillbook.Package.Inspection`. Its key says what was accepted: the same thing at another place is the same.

  # How long a text that is shown may be.
  @shown 100

  @doc "A finding at one place; the key is made of `what` if none is given."
  def finding(kind, level, what, file, line, reason, key \\ nil) do
    what = what |> String.split() |> Enum.join(" ")

    %{
      kind: kind,
      level: level,
      what:
        if(String.length(what) > @shown, do: String.slice(what, 0, @shown - 1) <> "…", else: what),
      file: file,
      line: line,
      count: 1,
      reason: reason,
      key: "#{kind} #{key || long(what)}"
    }
  end

  defp long(what), do: if(byte_size(what) > 200, do: digest(what), else: what)

  @doc "What stands for bytes in a key."
  def digest(bytes),
    do: :sha256 |> :crypto.hash(bytes) |> binary_part(0, 16) |> Base.encode16(case: :lower)
end
