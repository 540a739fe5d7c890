defmodule Skillbook.Handlers.Markdown.Search do
  @moduledoc false
  # `markdown.search`: searches the notes of vaults and lists them with a snippet.

  @behaviour Skillbook.Handler

  alias Skillbook.Search.Query
  alias Skillbook.Support.{Count, External}
  alias Skillbook.Vault.Hit
  alias Skillbook.{Command, FlagError, Flags, Result, Vault}

  @filters ~w(query tags folder field vault)

  @impl true
  def execute(flags, context) do
    with {:ok, flags} <- Flags.cast(flags, "query", Query.expected(), ~s("some text"), &words/1),
         {:ok, flags} <- cast_fields(flags),
         :ok <- Flags.require_any(flags, @filters),
         :ok <- check_place(flags),
         {:ok, results} <- Vault.search(context.view, flags["query"], options(flags)) do
      metadata = if Enum.any?(results.hits, & &1.external), do: %{external: true}, else: %{}
      {:ok, Result.ok(text(results, flags), data: results, metadata: metadata)}
    end
  end

  defp words(text) do
    with {:ok, _} <- Query.parse(text), do: {:ok, text}
  end

  defp check_place(%{"after" => _, "query" => _}),
    do: FlagError.conflict(["after", "query"], "only a list without --query has pages")

  defp check_place(%{"after" => place}) do
    if Vault.Search.place?(place),
      do: :ok,
      else:
        FlagError.invalid("after", place, "a vault and a path, as VAULT/PATH", "notes/Plan.md")
  end

  defp check_place(_flags), do: :ok

  defp cast_fields(%{"field" => fields} = flags) do
    pairs = Enum.map(fields, &String.split(&1, "=", parts: 2))

    case Enum.find(pairs, &(not match?([<<_, _::binary>>, _], &1))) do
      nil ->
        {:ok, %{flags | "field" => Enum.map(pairs, &List.to_tuple/1)}}

      wrong ->
        expected = "a field and its value as name=value"
        FlagError.invalid("field", Enum.join(wrong, "="), expected, "status=open")
    end
  end

  defp cast_fields(flags), do: {:ok, flags}

  defp options(flags) do
    for {option, name} <- [
          tags: "tags",
          folder: "folder",
          fields: "field",
          vault: "vault",
          limit: "limit",
          after: "after"
        ],
        value = flags[name],
        do: {option, value}
  end

  defp text(%{total: 0}, flags), do: "No notes found#{describe(flags)}"

  defp text(results, flags) do
    several_vaults? = results.hits |> Enum.uniq_by(& &1.vault) |> length() > 1
    hits = Enum.map(results.hits, &hit(&1, several_vaults?))
    head = "#{Count.text(results.total, "note")}#{describe(flags)}#{how(results.match)}"
    left = if flags["after"], do: nil, else: results.total - length(hits)
    more = Count.more(left, Vault.max_limit(), place(results))
    Enum.join([head | hits] ++ more, "\n")
  end

  # A path of a drive is a stranger's text, which no line of ours tells the model to write.
  defp place(%{next: next, hits: hits}) do
    if List.last(hits).external, do: nil, else: Command.word(next)
  end

  defp place(_results), do: nil

  defp how(:all), do: ""
  defp how(:any), do: ", none has all of it and these have some"
  defp how(:meaning), do: ", by words and by meaning"

  # A document of a drive is a stranger's text.
  defp hit(%{external: true} = hit, several_vaults?) do
    vault = if several_vaults?, do: " in #{hit.vault}", else: ""
    tags = Enum.map_join(hit.tags, &" #{External.line("#" <> &1, 60)}")

    snippet =
      if hit.snippet == "", do: "", else: "\n  #{External.line(Hit.marked(hit, "**", "**"), 500)}"

    "- #{External.line(hit.path)}#{vault}: #{External.line(hit.title)} " <>
      "(#{Count.text(hit.word_count, "word")}, external_input)#{tags}#{snippet}"
  end

  defp hit(hit, several_vaults?) do
    vault = if several_vaults?, do: " in #{hit.vault}", else: ""
    tags = Enum.map_join(hit.tags, &" ##{&1}")
    snippet = if hit.snippet == "", do: "", else: "\n  #{Hit.marked(hit, "**", "**")}"
    "- #{hit.path}#{vault}: #{hit.title} (#{Count.text(hit.word_count, "word")})#{tags}#{snippet}"
  end

  defp describe(flags) do
    parts =
      [
        flags["query"] && "text #{inspect(flags["query"], printable_limit: 80)}",
        flags["tags"] && "tagged #{Enum.join(flags["tags"], " and ")}",
        flags["folder"] && "in #{flags["folder"]}",
        flags["field"] &&
          Enum.map_join(flags["field"], " and ", fn {name, value} -> "#{name} is #{value}" end),
        flags["vault"] && "vault #{flags["vault"]}"
      ]
      |> Enum.filter(& &1)

    ": " <> Enum.join(parts, "; ")
  end
end
