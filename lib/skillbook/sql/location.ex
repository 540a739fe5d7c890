defmodule Skillbook.SQL.Location do
  @moduledoc false
  # Reads the text that names a database: a path or a URL.
  #
  # A URL that is not understood is refused. Used as a path, it would make a folder named by the
  # password in it. For the same reason no error contains more of a URL than its scheme.

  alias Skillbook.SQL.{Postgres, SQLite}

  @expected "a path, \":memory:\", postgres://user:password@host/database or " <>
              "sqlite:///folder/file.db"

  # A password may have blanks and, in an inspected text, escaped quotes.
  @url ~r/(?:\\.|[^"\\])*?([a-z][a-z0-9+.-]*)?:\/\/(?:\\.|[^"\\])*+/isu

  @type connection :: {module(), keyword()}

  @doc """
  The connection of a text, or the expected texts. `sqlite` and `file` URLs have an absolute path.

      iex> Skillbook.SQL.Location.read("var/skills.db")
      {:ok, {Skillbook.SQL.SQLite, [path: "var/skills.db"]}}
      iex> Skillbook.SQL.Location.read("sqlite:///var/my%20skills.db")
      {:ok, {Skillbook.SQL.SQLite, [path: "/var/my skills.db"]}}
      iex> {:error, "a path" <> _} = Skillbook.SQL.Location.read("mysql://host/skills")
  """
  @spec read(String.t()) :: {:ok, connection()} | {:error, String.t()}
  def read(text) do
    with true <- url?(text),
         {:ok, connection} <- connection(text) do
      {:ok, connection}
    else
      false -> {:ok, {SQLite, path: text}}
      :error -> {:error, @expected}
    end
  end

  # A function keeps the URL and its password out of supervisor reports.
  defp connection(text) do
    [scheme, rest] = String.split(text, "://", parts: 2)

    case String.downcase(scheme) do
      postgres when postgres in ["postgres", "postgresql"] ->
        {:ok, {Postgres, url: fn -> "postgres://" <> rest end}}

      file when file in ["sqlite", "file"] ->
        file(rest)

      _other ->
        :error
    end
  end

  defp file("/" <> _ = path) do
    path = URI.decode(path)

    if String.valid?(path) and path =~ ~r{\A/[^?#\x00]*[^/?#\x00]\z} and not url?(path),
      do: {:ok, {SQLite, path: path}},
      else: :error
  end

  defp file(_rest), do: :error

  @doc "Whether a text is a URL, so that it is no path."
  @spec url?(term()) :: boolean()
  def url?(text), do: is_binary(text) and String.contains?(text, "://")

  @doc """
  Replaces URLs in a text by their schemes.

      iex> Skillbook.SQL.Location.redact(~s(["mysql://ann:secret@host/db", 5]))
      ~s(["mysql://…", 5])
      iex> Skillbook.SQL.Location.redact("mysql://ann:se cret@host/db")
      "mysql://…"
  """
  @spec redact(String.t()) :: String.t()
  def redact(text), do: if(url?(text), do: String.replace(text, @url, "\\1://…"), else: text)
end
