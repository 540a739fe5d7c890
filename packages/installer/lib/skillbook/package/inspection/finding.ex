defmodule Skillbook.Package.Inspection.Finding do
  @moduledoc false
  # Builds a finding of `Skillbook.Package.Inspection`. Its key identifies it in the lock file;
  # the same text at another place has the same key.

  @max_text 100
  @max_key 200

  @doc "A finding at one place. Without a key, `what` is its key."
  def finding(kind, level, what, file, line, reason, key \\ nil) do
    what = what |> String.split() |> Enum.join(" ")

    %{
      kind: kind,
      level: level,
      what: truncate(what),
      file: file,
      line: line,
      count: 1,
      reason: reason,
      key: "#{kind} #{key || shorten(what)}"
    }
  end

  defp truncate(what),
    do:
      if(String.length(what) > @max_text,
        do: String.slice(what, 0, @max_text - 1) <> "…",
        else: what
      )

  defp shorten(what), do: if(byte_size(what) > @max_key, do: digest(what), else: what)

  @doc "The hash of a content in a key."
  def digest(bytes),
    do: :sha256 |> :crypto.hash(bytes) |> binary_part(0, 16) |> Base.encode16(case: :lower)
end
