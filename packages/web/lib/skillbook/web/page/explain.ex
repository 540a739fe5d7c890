defmodule Skillbook.Web.Page.Explain do
  @moduledoc false
  # Shows as stages why a name is, or is not, in the prompt of a profile.
  #
  # `Skillbook.explain/3` also finds files that the profile may not see. Only operators get those,
  # with paths and diagnostics. Others get the files that their view uses, so a hidden name is a
  # missing one.

  import Skillbook.Web.Html, only: [tag: 2, tag: 3]
  import Skillbook.Web.Page.Report

  alias Skillbook.Book.Cache
  alias Skillbook.{Book, Catalog, View}
  alias Skillbook.Web.Caller
  alias Skillbook.Web.Page.{Chart, Layout, Parts}

  @max_files 20

  def show(request, _values) do
    view = Caller.view(request)
    name = field(request, "name", 200)
    profile = profile(request, view)
    found = if name == "", do: {[], [], nil}, else: files(request, view, name, profile)
    {files, close, builtin} = found

    data = %{
      name: name,
      profile: profile.id,
      close: close,
      builtin: builtin,
      files: for(file <- files, do: Map.put(file, :stages, stages(file, profile)))
    }

    reply(request, data, :try, :explain, "Name", fn -> content(request, data) end)
  end

  # An operator may ask for another profile than its own, as with `as`, and still sees why a file
  # is hidden from it.
  defp profile(%{caller: %{operator?: true}} = request, view) do
    with id when id != "" <- field(request, "profile", 200),
         {:ok, %{profile: profile}} <- Caller.seen_as(request.caller, id) do
      profile
    else
      _none -> view.profile
    end
  end

  defp profile(_request, view), do: view.profile

  defp files(%{caller: %{operator?: true} = caller}, view, name, profile) do
    tenant = caller.profile.tenant
    # Findings about files that are no entries are in no state of a view.
    generation = Catalog.generation(Book.fetch!(view.book).catalog)
    key = {:explained, generation, View.state(View.of(view.book, profile)), tenant, name}

    explanation =
      Cache.keep(view.book, key, fn ->
        Skillbook.explain(view.book, name, profile: profile, tenant: tenant)
      end)

    {Enum.take(explanation.files, @max_files), explanation.close, explanation.builtin}
  end

  defp files(_request, view, name, profile) do
    case View.fetch(view, name) do
      {:ok, entry} ->
        files =
          for %{state: :used, hidden: [], name: used} = file when used == entry.name <-
                Skillbook.explain(Book.of!(view).name, entry.name, profile: profile).files,
              do: %{file | path: nil, by: nil, diagnostics: []}

        {files, [], nil}

      {:error, error} ->
        {[], error.suggestions, nil}
    end
  end

  # Each stage is passed, or ends the way of a file to the prompt.
  defp stages(file, profile) do
    checks = [
      {"Its file is an entry", file.state != :no_entry, entry_note(file)},
      {"Its source selects it", file.state != :not_selected,
       if(file.state == :not_selected, do: "no glob of the source matches", else: source(file))},
      {"No other file takes its name", file.state not in [:shadowed, :duplicate, :refused],
       taken(file)},
      {"The profile may see it", file.hidden == [],
       if(file.hidden == [], do: "profile #{profile.id}", else: Enum.join(file.hidden, "; "))},
      {"It is in the prompt", in_prompt?(file.prompt), file.prompt || "nowhere"}
    ]

    {stages, _open?} =
      Enum.map_reduce(checks, true, fn
        {text, _passed, _note}, false ->
          {%{text: text, state: :open, note: "not reached"}, false}

        {text, passed?, note}, true ->
          {%{text: text, state: if(passed?, do: :pass, else: :fail), note: note}, passed?}
      end)

    stages
  end

  defp entry_note(%{state: :no_entry}), do: "see its diagnostics"
  defp entry_note(%{state: :index}), do: "the index of a domain"
  defp entry_note(%{name: name}), do: name || ""

  defp source(%{source: nil}), do: "no source"
  defp source(%{source: source}), do: "source #{source}"

  defp taken(%{state: :shadowed} = file), do: "a later source has it#{by(file)}"
  defp taken(%{state: :duplicate} = file), do: "its source has it before#{by(file)}"
  defp taken(%{state: :refused}), do: "its source has low trust, and another has the name"
  defp taken(_file), do: "it is the one that is used"

  defp by(%{by: nil}), do: ""
  defp by(%{by: path}), do: ": #{Path.basename(path)}"

  defp in_prompt?(nil), do: false
  defp in_prompt?(text), do: not String.starts_with?(text, ["nowhere", "left out"])

  defp content(request, data) do
    [
      form(request, data),
      cond do
        data.name == "" ->
          Parts.empty("Write a name or a file, to see whether it is in the prompt, and why.")

        data.files == [] ->
          [
            Parts.empty("No file has this name."),
            builtin(data.builtin),
            close(request, data.close)
          ]

        true ->
          for {file, number} <- Enum.with_index(data.files, 1),
              do: file(request, file, number)
      end
    ]
  end

  defp builtin(nil), do: nil

  defp builtin(item) do
    option = tag(:code, [], "builtins: [#{inspect(item)}]")
    tag(:p, [], ["It is built in, and the option ", option, " of the book adds it."])
  end

  defp close(_request, []), do: nil

  defp close(request, names) do
    tag(:p, [], [
      "Similar names: ",
      names
      |> Enum.map(&tag(:a, [href: Layout.path(request, ["explain"], name: &1)], &1))
      |> Enum.intersperse(", ")
    ])
  end

  defp form(request, data) do
    input = fn name, label, value ->
      pair(name, label, tag(:input, id: name, name: name, value: value, maxlength: 200))
    end

    fields = [
      input.("name", "Name", data.name),
      if(request.caller.operator?, do: input.("profile", "Profile", data.profile))
    ]

    query_form(request, ["explain"], fields, "Explain")
  end

  defp file(request, file, number) do
    ended = Enum.find(file.stages, &(&1.state == :fail))

    about = %{
      id: "file-#{number}",
      title: "The way of #{file.name || Path.basename(file.path || "the file")} to the prompt",
      description:
        if(ended,
          do: "It ends at the stage “#{ended.text}”: #{ended.note}.",
          else: "It passes all stages: #{file.prompt}."
        )
    }

    tag(:section, [class: "explained", aria_labelledby: "heading-#{number}"], [
      tag(:h2, [id: "heading-#{number}"], [
        file.name || "Not an entry",
        " ",
        if(ended,
          do: Parts.badge("not in the prompt", :warn),
          else: Parts.badge("in the prompt", :good)
        )
      ]),
      if(file.path, do: tag(:p, [], tag(:code, [], file.path))),
      tag(:p, [], about.description),
      tag(:div, [class: "beside"], [
        Chart.stages(about, for(stage <- file.stages, do: {stage.text, stage.state, stage.note})),
        Parts.table(
          "Stages",
          ["Stage", "Result", "Reason"],
          for(stage <- file.stages, do: [stage.text, result(stage.state), stage.note])
        )
      ]),
      diagnostics(request, file.diagnostics)
    ])
  end

  defp result(:pass), do: Parts.badge("passed", :good)
  defp result(:fail), do: Parts.badge("ends here", :bad)
  defp result(:open), do: Parts.badge("not reached", :plain)

  defp diagnostics(_request, []), do: nil

  defp diagnostics(_request, diagnostics) do
    tag(:ul, [], for(one <- diagnostics, do: tag(:li, [], to_string(%{one | path: nil}))))
  end
end
