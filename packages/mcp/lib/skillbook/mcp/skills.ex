defmodule Skillbook.MCP.Skills do
  @moduledoc false
  # The extension `io.modelcontextprotocol/skills`: its methods, and its place in capabilities.
  #
  # A skill is an entry that is a skill or a command. The list has those that a model is offered;
  # `skills/get` answers for each that the caller's view shows.

  alias Skillbook.Book.Cache
  alias Skillbook.MCP.{Context, Error, Pagination, Resources, Skill}
  alias Skillbook.Support.JSON
  alias Skillbook.View

  @extension "io.modelcontextprotocol/skills"

  # A page ends after this many skills, files, bytes of its own, or bytes of the files, which are
  # read for their digests. A skill is always on one page.
  @page {50, 512, 512 * 1024, 16 * 1024 * 1024}
  # Skills whose texts are made and kept together: more than a page, so that it need not look for
  # the next one elsewhere, and as many as a view reads at once.
  @part 64

  @doc "The extensions that the server declares, with their settings."
  @spec capabilities() :: map()
  def capabilities, do: %{@extension => %{"directoryRead" => true}}

  @spec handle(String.t(), map(), Context.t()) :: {:ok, map()} | {:error, Error.t()}
  def handle("skills/list", params, %Context{view: view}) do
    with {:ok, after_name} <- Pagination.after_key(params, "skills") do
      parts =
        view
        |> View.stream(listed: true, after: after_name)
        |> Stream.filter(&(&1.kind in [:command, :skill] and Skill.served?(&1)))
        |> Stream.chunk_every(@part)

      {:ok, page(view, parts)}
    end
  end

  def handle("skills/get", params, %Context{view: view}) do
    with {:ok, uri} <- Resources.uri(params) do
      with {:ok, {:page, entry}} <- Resources.find(view, uri),
           true <- entry.kind in [:command, :skill],
           {:ok, skill} <- Skill.entry(view, entry) do
        {:ok, %{"skill" => skill}}
      else
        {:error, reason} ->
          {:error, Error.params("#{reason}; a skill with more is not served", %{"uri" => uri})}

        _ ->
          {:error, Error.params("no skill is served at #{Error.quoted(uri)}", %{"uri" => uri})}
      end
    end
  end

  def handle("resources/directory/read", params, context),
    do: Resources.directory(params, context)

  defp page(view, parts) do
    {skills, _left, next} = Enum.reduce_while(parts, {[], @page, :none}, &add_part(view, &1, &2))
    page = %{"skills" => Enum.reverse(skills)}

    case next do
      {:after, name} -> Map.put(page, "nextCursor", Pagination.cursor("skills", name))
      _no_more -> page
    end
  end

  # A full page needs a cursor only if another entry comes.
  defp add_part(_view, _entries, {skills, left, {:full, name}}),
    do: {:halt, {skills, left, {:after, name}}}

  # The texts of skills depend on the view alone, their files do not.
  defp add_part(view, [first | _] = entries, page) do
    texts =
      Cache.keep(view.book, {:skills, View.state(view), first.name}, fn ->
        Map.new(entries, &{&1.name, Skill.text(view, &1)})
      end)

    Enum.reduce_while(entries, {:cont, page}, fn entry, {_next, page} ->
      {next, page} = add(view, entry, texts[entry.name], page)
      {next, {next, page}}
    end)
  end

  defp add(_view, _entry, _text, {skills, left, {:full, name}}),
    do: {:halt, {skills, left, {:after, name}}}

  defp add(view, entry, text, {skills, left, :none}) do
    with {:ok, text} <- text,
         {:ok, skill} <- Skill.entry(view, entry, text) do
      left = less(left, skill)
      room? = Enum.all?(Tuple.to_list(left), &(&1 > 0))
      {:cont, {[skill | skills], left, if(room?, do: :none, else: {:full, entry.name})}}
    else
      # Too large, or without a text that can be served.
      _ -> {:cont, {skills, left, :none}}
    end
  end

  defp less({skills, files, bytes, content}, %{"resources" => resources} = skill) do
    size = skill |> JSON.encode() |> byte_size()
    read = resources |> Enum.map(& &1["size"]) |> Enum.sum()
    {skills - 1, files - length(resources), bytes - size, content - read}
  end
end
