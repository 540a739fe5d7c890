defmodule Skillbook.Handlers.Drive.Files do
  @moduledoc false
  # Shows files in results of the `drive.*` commands.

  alias Skillbook.Support.External

  @max_name 200

  @doc "One line about a file: its id, sort, name, time, owner."
  @spec line(Skillbook.Drive.file()) :: String.t()
  def line(%{kind: :folder} = file), do: "- #{named(file)}#{owner(file)}#{shared(file)}"

  def line(file) do
    "- #{named(file)}, changed #{time(file.modified)}#{size(file)}#{owner(file)}#{shared(file)}"
  end

  @doc "Id, sort and name of a file."
  @spec named(Skillbook.Drive.file()) :: String.t()
  def named(file), do: "#{id(file)} #{kind(file)} #{External.line(file.name, @max_name)}"

  @doc "The id as it is written in commands."
  @spec id(Skillbook.Drive.file()) :: String.t()
  def id(%{id: id}), do: plain(id)

  @doc "The revision as it is written in commands."
  @spec revision(Skillbook.Drive.file()) :: String.t()
  def revision(%{revision: revision}), do: plain(revision)

  @doc "The head of a file's text; `shown_revision/2` reads it."
  @spec head(Skillbook.Drive.file()) :: String.t()
  def head(file),
    do: "#{named(file)}, changed #{time(file.modified)}, revision #{revision(file)}"

  @doc "The revision of a file that a conversation has shown last; `nil` if none, or another way."
  @spec shown_revision(Skillbook.Drive.file(), [String.t()]) :: String.t() | nil
  def shown_revision(file, shown) do
    id = Regex.escape(id(file))

    Enum.find_value(shown, fn origin ->
      with [_all, revision] <- Regex.run(~r/\A#{id} .*, revision (\S+)\z/u, origin),
           do: revision
    end)
  end

  @doc "A file of a vault, as commands name it, and its size."
  @spec saved(%{vault: String.t(), path: String.t(), size: non_neg_integer()}) :: String.t()
  def saved(saved),
    do: External.line("vault:#{saved.vault}/#{saved.path}", 1_000) <> size(saved)

  # Quotes around what a service is not expected to send.
  defp plain(text), do: if(text =~ ~r/\A[\w.:!~+-]+\z/, do: text, else: External.line(text))

  @doc "The address of a file, if it is one."
  @spec url(Skillbook.Drive.file()) :: String.t() | nil
  def url(%{url: url}), do: if(url && url =~ ~r/\Ahttps:\/\/[!-~]{1,2000}\z/, do: url)

  @spec time(DateTime.t()) :: String.t()
  def time(time), do: Calendar.strftime(time, "%Y-%m-%d %H:%M UTC")

  defp kind(%{kind: :other} = file), do: "file of the type #{External.line(file.type, 80)}"
  defp kind(%{kind: :markdown}), do: "Markdown file"
  defp kind(%{kind: :text}), do: "text file"
  defp kind(%{kind: :pdf}), do: "PDF"
  defp kind(%{kind: kind}), do: Atom.to_string(kind)

  defp size(%{size: nil}), do: ""
  defp size(%{size: size}) when size < 1024, do: ", #{size} B"
  defp size(%{size: size}) when size < 1_048_576, do: ", #{div(size, 1024)} KB"
  defp size(%{size: size}), do: ", #{div(size, 1_048_576)} MB"

  defp owner(%{owner: nil}), do: ""
  defp owner(%{owner: owner}), do: ", of #{External.line(owner, 80)}"

  defp shared(%{shared: true}), do: ", shared"
  defp shared(_file), do: ""
end
