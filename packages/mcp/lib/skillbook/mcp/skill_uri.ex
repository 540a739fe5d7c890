defmodule Skillbook.MCP.SkillURI do
  @moduledoc false
  # The URIs of skills, their files and notes.
  #
  #     skill://pdf/SKILL.md                        the skill `pdf`
  #     skill://pdf/references/forms.md             a file of it
  #     skill://email.send/email-send/SKILL.md      the command `email.send`
  #     note://Meeting%20notes                      a note
  #
  # The last folder is the skill's name in the Agent Skills format. An entry with a name that the
  # format does not allow has that name in front, where no name of the format looks like it. So a
  # URI depends only on the name of its entry: other entries, also hidden ones, change no URI, and
  # no skill lies within another one.

  alias Skillbook.Package.Skill

  @max_bytes 4 * 1024

  @type place ::
          {:skill, name :: String.t(), path :: [String.t()]}
          | {:prefix, name :: String.t()}
          | {:note, name :: String.t()}

  @doc "The file of a skill's instructions."
  @spec page() :: String.t()
  def page, do: "SKILL.md"

  @doc """
  Returns the name of an entry in the Agent Skills format.

      iex> Enum.map(["pdf", "email.send", "Straße", "日本"], &Skillbook.MCP.SkillURI.name/1)
      ["pdf", "email-send", "stra-e", "skill"]
  """
  @spec name(String.t()) :: String.t()
  def name(entry), do: if(format?(entry), do: entry, else: Skill.normalize(entry) || "skill")

  @doc "Whether the Agent Skills format allows the name."
  @spec format?(String.t()) :: boolean()
  def format?(name), do: Skill.plain?(name)

  @doc """
  Returns the URI of an entry's folder, or of a file or a folder in it.

      iex> Skillbook.MCP.SkillURI.of("pdf")
      "skill://pdf"
      iex> Skillbook.MCP.SkillURI.of("Old reports", "in/2025 Q1.csv")
      "skill://Old%20reports/old-reports/in/2025%20Q1.csv"
  """
  @spec of(String.t(), String.t() | nil) :: String.t()
  def of(entry, path \\ nil) do
    names = if format?(entry), do: [entry], else: [entry, name(entry)]
    names = if path, do: names ++ String.split(path, "/"), else: names
    "skill://" <> Enum.map_join(names, "/", &encode/1)
  end

  @doc "Returns the URI of a note."
  @spec note(String.t()) :: String.t()
  def note(entry), do: "note://" <> encode(entry)

  defp encode(name), do: URI.encode(name, &URI.char_unreserved?/1)

  @doc """
  Reads a URI: the name of the entry, and the names of the path below its folder. `:prefix` is the
  folder around the folder of an entry.

      iex> Skillbook.MCP.SkillURI.parse("skill://pdf/a%20b.md")
      {:ok, {:skill, "pdf", ["a b.md"]}}
      iex> Skillbook.MCP.SkillURI.parse("skill://email.send")
      {:ok, {:prefix, "email.send"}}
      iex> Skillbook.MCP.SkillURI.parse("skill://pdf/..%2Fetc/passwd")
      :error
  """
  @spec parse(String.t()) :: {:ok, place()} | :error
  def parse(uri) when byte_size(uri) > @max_bytes, do: :error
  def parse("skill://" <> rest), do: with({:ok, names} <- names(rest), do: skill(names))

  def parse("note://" <> rest) do
    case names(rest) do
      {:ok, [name]} -> {:ok, {:note, name}}
      _ -> :error
    end
  end

  def parse(_uri), do: :error

  defp skill([entry | path]) do
    cond do
      not Enum.all?(path, &file_name?/1) -> :error
      format?(entry) -> {:ok, {:skill, entry, path}}
      path == [] -> {:ok, {:prefix, entry}}
      hd(path) == name(entry) -> {:ok, {:skill, entry, tl(path)}}
      true -> :error
    end
  end

  # A name of an entry may have a slash, a name of a file none.
  defp file_name?(name), do: name not in [".", ".."] and not String.contains?(name, ["/", "\0"])

  # A question mark and a hash would begin other parts of the URI.
  defp names(text) do
    with false <- String.contains?(text, ["?", "#"]),
         parts = String.split(text, "/"),
         names = Enum.map(parts, &decode/1),
         true <- Enum.all?(names, &(&1 not in [:error, ""])) do
      {:ok, names}
    else
      _ -> :error
    end
  end

  defp decode(part) do
    with true <- part =~ ~r/\A([^%]|%[0-9A-Fa-f]{2})*\z/,
         name = URI.decode(part),
         true <- String.valid?(name) do
      name
    else
      _ -> :error
    end
  end
end
