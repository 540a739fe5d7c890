defmodule Skillbook.Web.Page.Import do
  @moduledoc false
  # Imports skills of a file into the store, in two steps: the file is sent, and the answer is the
  # report about it (`Skillbook.Package.Inspection`); then the skills that were ticked are
  # imported. Between them the file is in the form, so the server keeps nothing, and each skill is
  # imported only if its report is still the one that was accepted.

  import Skillbook.Web.Html, only: [tag: 2, tag: 3]
  import Skillbook.Web.Page.Parts

  alias Skillbook.{Package, Profile}
  alias Skillbook.Package.{Inspection, Question}
  alias Skillbook.Support.TemporaryFolder
  alias Skillbook.Web.{Caller, Request, Upload}
  alias Skillbook.Web.Page.{Layout, Rights}

  # Bytes of a file. It comes back with the form, in base64.
  @max_file 8 * 1024 * 1024
  @archives ~w(.zip .tar .tar.gz .tgz)
  @max_findings 200
  # An archive may take some hundred times its size, so a book reads one at a time: others
  # wait for a few seconds. Milliseconds that one may take, less than a request.
  @max_time 45_000
  @tries 4

  @doc "Answers with the form for a file."
  def new(request, _values), do: Rights.with_writes(request, fn -> choose(request, []) end)

  @doc "Reports about a file, or imports the skills that were accepted."
  def create(request, _values) do
    Rights.with_writes(request, fn ->
      case Request.form(request) do
        {:ok, %{"data" => data} = fields} when is_binary(data) -> accept(request, fields)
        {:ok, %{"file" => %Upload{} = file} = fields} -> report(request, file, labels(fields))
        {:ok, _fields} -> choose(request, [{"file", "expected a file, got none"}])
        :error -> Layout.failed(request, 400, "The form cannot be read.")
      end
    end)
  end

  defp choose(request, errors) do
    error = with {_field, text} <- List.keyfind(errors, "file", 0), do: sentence(text)

    form =
      form(
        request,
        ["import"],
        [
          field("file", "File", [error: error, required: true, help: help()], fn attributes ->
            accept = Enum.join([".md", ".gz" | @archives], ",")
            tag(:input, [type: "file", accept: accept] ++ attributes)
          end),
          text_area("labels", "Labels", default_labels(request.caller.profile),
            help: "One on each line. Only profiles that hold all of them see the new entries.",
            rows: 2
          ),
          tag(:div, [class: "buttons"], [
            tag(:button, [type: "submit", class: "primary"], "Review the file"),
            tag(:a, [class: "button", href: Layout.path(request, ["skills"])], "Cancel")
          ])
        ],
        enctype: "multipart/form-data"
      )

    Layout.page(request, "Import", [tag(:p, [], intro()), form],
      section: :skills,
      status: if(errors == [], do: 200, else: 422),
      back: {"Skills", Layout.path(request, ["skills"])},
      errors: errors(errors)
    )
  end

  defp intro do
    "Nothing is imported before you have seen a report about it. Imported entries have low " <>
      "trust: they never run, and they have no schedule."
  end

  defp help do
    "A page (.md), or an archive with skills (#{Enum.join(@archives, ", ")}), of at most " <>
      "#{div(@max_file, 1024 * 1024)} MiB."
  end

  # New entries get the label `imported` where the profile holds it.
  defp default_labels(profile),
    do: if(Profile.foreign(profile, ["imported"]) == [], do: "imported", else: "")

  defp labels(fields) do
    text = if is_binary(fields["labels"]), do: fields["labels"], else: ""

    text
    |> String.split(["\r\n", "\n", "\r"])
    |> Enum.map(&String.trim/1)
    |> Enum.reject(&(&1 == ""))
  end

  # The report

  defp report(request, %Upload{name: name, data: data}, labels) do
    with {:ok, type} <- type(name),
         :ok <- size(data),
         {:ok, outcomes} <-
           import_from(request, type, name, data, labels, fn _key -> false end) do
      report_page(
        request,
        %{type: type, name: Path.basename(name), data: data, labels: labels},
        outcomes
      )
    else
      {:error, text} -> choose(request, [{"file", text}])
    end
  end

  defp type(name) do
    lower = String.downcase(name)

    case Enum.find([".md" | @archives], &String.ends_with?(lower, &1)) do
      nil -> {:error, "expected a file whose name ends in .md, #{Enum.join(@archives, ", ")}"}
      type -> {:ok, type}
    end
  end

  defp size(data) when byte_size(data) <= @max_file, do: :ok
  defp size(_data), do: {:error, "expected at most #{div(@max_file, 1024 * 1024)} MiB"}

  # The outcomes, each with the text of its error, in which the file has the name that was sent.
  defp import_from(request, type, name, data, labels, accept) do
    in_turn(request, &import_in(&1, request, {type, name, data, labels, accept}))
  end

  defp in_turn(request, import) do
    limited = fn ->
      TemporaryFolder.with_folder(fn folder ->
        task = Task.async(fn -> import.(folder) end)

        with nil <- Task.yield(task, @max_time) || Task.shutdown(task, :brutal_kill) do
          text = "expected fewer skills: they took longer than #{div(@max_time, 1000)} s"
          {:ok, {:error, text <> ", and some of them may be imported"}}
        end
      end)
    end

    lock = {{__MODULE__, Caller.view(request).book}, self()}

    case :global.trans(lock, limited, [node()], @tries) do
      {:ok, result} -> result
      :aborted -> {:error, "expected no other import at the same time; send it again"}
    end
  end

  defp import_in(folder, request, {type, name, data, labels, accept}) do
    source = write(folder, type, name, data)
    message = &String.replace(Exception.message(&1), [source, folder], Path.basename(name))
    options = [names: :all, labels: labels, accept: &accept.(key(&1, data))]

    case Package.into_store(Caller.view(request), source, options) do
      {:ok, outcomes} ->
        {:ok, for(one <- outcomes, do: {one, one.error && message.(one.error)})}

      {:error, error} ->
        {:error, message.(error)}
    end
  end

  # The name of a page's folder is that of the skill if its frontmatter has none.
  defp write(folder, ".md", name, data) do
    skill = Path.join(folder, slug(name))
    File.mkdir!(skill)
    File.write!(Path.join(skill, "SKILL.md"), data)
    folder
  end

  defp write(folder, type, _name, data) do
    path = Path.join(folder, "upload" <> type)
    File.write!(path, data)
    path
  end

  defp slug(name) do
    slug =
      name
      |> Path.basename()
      |> Path.rootname()
      |> String.downcase()
      |> String.replace(~r/[^a-z0-9]+/, "-")
      |> String.slice(0, 64)
      |> String.trim("-")

    if slug == "", do: "skill", else: slug
  end

  defp report_page(request, file, outcomes) do
    form =
      form(request, ["import"], [
        for {name, value} <- [
              {"type", file.type},
              {"name", file.name},
              {"data", Base.encode64(file.data)},
              {"labels", Enum.join(file.labels, "\n")}
            ] do
          tag(:input, type: "hidden", name: name, value: value)
        end,
        Enum.map(Enum.with_index(outcomes), &skill(&1, file.data)),
        # Of an archive, the report has to do.
        if file.type == ".md" do
          tag(:details, [], [
            tag(:summary, [], "The text"),
            tag(:pre, [class: "source", tabindex: "0"], file.data)
          ])
        end,
        tag(:div, [class: "buttons"], [
          if(Enum.any?(outcomes, fn {outcome, _text} -> outcome.question end),
            do: tag(:button, [type: "submit", class: "primary"], "Import the ticked skills")
          ),
          tag(:a, [class: "button", href: Layout.path(request, ["import"])], "Cancel")
        ])
      ])

    Layout.page(request, "Import " <> file.name, form,
      section: :skills,
      back: {"Import", Layout.path(request, ["import"])}
    )
  end

  defp skill({{%{question: nil} = outcome, text}, _at}, _data) do
    tag(:section, [class: "skill"], [
      tag(:h2, [], outcome.name),
      tag(:p, [class: "error"], sentence(text))
    ])
  end

  defp skill({{%{question: %Question{} = question} = outcome, _refused}, at}, data) do
    findings = question.inspection.findings

    tag(:section, [class: "skill"], [
      tag(:h2, [], outcome.name),
      tag(:p, [], question.description),
      tag(:div, [class: "field check"], [
        tag(:input,
          type: "checkbox",
          id: "accept-#{at}",
          name: "accept[]",
          value: key(question, data),
          checked: findings == []
        ),
        tag(:label, [for: "accept-#{at}"], "Import " <> outcome.name)
      ]),
      findings(findings),
      diagnostics(question.diagnostics)
    ])
  end

  defp findings([]), do: tag(:p, [], "The report has no findings.")

  defp findings(findings) do
    warnings = Enum.count(findings, &(&1.level == :warning))
    kind = fn warning? -> if warning?, do: :bad, else: :plain end

    rows =
      for finding <- Enum.take(findings, @max_findings) do
        [
          tag(:code, [], finding.what),
          badge(Atom.to_string(finding.level), kind.(finding.level == :warning)),
          Atom.to_string(finding.kind),
          [finding.file, if(finding.line, do: ", line #{finding.line}")],
          finding.reason
        ]
      end

    [
      tag(:p, [], [
        badge(count(warnings, "warning", "warnings"), kind.(warnings > 0)),
        " ",
        badge(count(length(findings) - warnings, "notice", "notices"))
      ]),
      table("Findings", ["Finding", "Level", "Kind", "Where", "Why"], rows)
    ]
  end

  defp diagnostics([]), do: nil

  defp diagnostics(diagnostics) do
    items = for one <- Enum.take(diagnostics, @max_findings), do: tag(:li, [], one.message)
    [tag(:h3, [], "Diagnostics"), tag(:ul, [], items)]
  end

  # The accepted thing: this skill of this file, with all that the report found.
  defp key(%Question{} = question, data) do
    accepted = {question.name, Inspection.keys(question.inspection), :crypto.hash(:sha256, data)}
    :sha256 |> :crypto.hash(:erlang.term_to_binary(accepted)) |> Base.encode16(case: :lower)
  end

  # Importing

  defp accept(request, fields) do
    accepted = List.wrap(fields["accept"])
    labels = labels(fields)
    name = if is_binary(fields["name"]), do: fields["name"], else: ""

    with {:ok, type} <- type(if(is_binary(fields["type"]), do: fields["type"], else: "")),
         {:ok, data} <- decode(fields["data"]),
         {:ok, outcomes} <- import_from(request, type, name, data, labels, &(&1 in accepted)) do
      done(request, outcomes, labels, {data, accepted})
    else
      {:error, text} -> choose(request, [{"file", text}])
    end
  end

  defp decode(text) when byte_size(text) <= div(@max_file * 4, 3) + 4 do
    with :error <- Base.decode64(text), do: {:error, "expected the file of the report"}
  end

  defp decode(_text), do: {:error, "expected at most #{div(@max_file, 1024 * 1024)} MiB"}

  # The caller holds the labels, so the caller's lists show the skills.
  defp hidden(labels) do
    [
      "Only profiles that hold #{if match?([_], labels), do: "the label", else: "the labels"} ",
      labels |> Enum.map(&tag(:code, [], &1)) |> Enum.intersperse(", "),
      " see new entries: give others ",
      tag(:code, [], "grants: #{inspect(labels)}"),
      ", or remove the labels from an entry."
    ]
  end

  defp done(request, outcomes, labels, {data, accepted}) do
    rows =
      for {outcome, text} <- outcomes do
        refused? = outcome.question != nil and key(outcome.question, data) not in accepted

        {kind, answer} =
          cond do
            outcome.action == :failed and refused? -> {:plain, "left out"}
            outcome.action == :failed -> {:bad, "failed"}
            true -> {:good, Atom.to_string(outcome.action)}
          end

        name =
          if outcome.action == :failed,
            do: outcome.name,
            else: tag(:a, [href: Layout.path(request, ["skills", outcome.name])], outcome.name)

        reason =
          if outcome.action == :failed and not refused?,
            do: sentence(text)

        [name, badge(answer, kind), reason]
      end

    imported? = Enum.any?(outcomes, fn {outcome, _text} -> outcome.action != :failed end)

    Layout.page(
      request,
      "Imported",
      [
        table("Skills of the file", ["Skill", "Result", "Reason"], rows, hide_caption: true),
        if(imported? and labels != [], do: tag(:p, [], hidden(labels)))
      ],
      section: :skills,
      back: {"Skills", Layout.path(request, ["skills"])}
    )
  end
end
