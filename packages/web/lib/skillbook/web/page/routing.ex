defmodule Skillbook.Web.Page.Routing do
  @moduledoc false
  # The stages by which the router picks the skills for a request (`Skillbook.Preflight`).

  import Skillbook.Web.Html, only: [tag: 2, tag: 3]
  import Skillbook.Web.Page.Report

  alias Skillbook.Preflight
  alias Skillbook.Preflight.Settings
  alias Skillbook.Web.Caller
  alias Skillbook.Web.Page.Parts

  @max_request 2_000
  @timeout 5_000
  # Candidates of a stage in the page. The JSON has all of them.
  @max_candidates 20

  def show(request, _values) do
    view = Caller.view(request)
    text = field(request, "request", @max_request)
    # A page that is only opened must not cost anything.
    model? = field(request, "model") == "1"
    settings = Settings.of_call(view, [])
    stages = if model?, do: settings.stages, else: settings.stages -- [:model]

    result =
      if text == "",
        do: %Preflight{},
        else: Preflight.run(view, text, stages: stages, timeout: @timeout, explain: true)

    data = %{
      request: text,
      profile: view.profile.id,
      enabled: settings.enabled,
      model: settings.model != nil,
      asked_model: model?,
      threshold: settings.threshold,
      needed: result.needed,
      picks: Enum.map(result.picks, &Map.from_struct/1),
      stages: Enum.map(result.stages, &stage(request, &1))
    }

    reply(request, data, :try, :route, "Request", fn -> content(request, data) end)
  end

  # Times may depend on entries that the profile does not see.
  defp stage(%{caller: %{operator?: true}}, stage), do: stage
  defp stage(_request, stage), do: Map.delete(stage, :duration)

  defp content(request, data) do
    [
      form(request, data),
      cond do
        not data.enabled ->
          Parts.empty("The router is off for this profile: nothing is picked.")

        data.request == "" ->
          Parts.empty("Write a request as a user would, to see which skills it finds, and why.")

        true ->
          [picks(request, data), Enum.map(data.stages, &shown(request, data, &1))]
      end
    ]
  end

  defp form(request, data) do
    input = [id: "request", name: "request", class: "wide", value: data.request]

    fields = [
      tag(:label, [for: "request"], "Request"),
      tag(:input, input ++ [maxlength: @max_request]),
      if(data.model, do: tick("model", "Ask the model too", data.asked_model))
    ]

    query_form(request, ["route"], fields, "Route")
  end

  defp picks(_request, %{picks: []} = data) do
    Parts.empty("No skill is needed: none has a confidence of #{decimals(data.threshold, 2)}.")
  end

  defp picks(request, data) do
    Parts.table(
      "Picked, from a confidence of #{decimals(data.threshold, 2)} on",
      ["Entry", "Confidence", "Stage", "Reason"],
      for pick <- data.picks do
        [entry(request, pick.name), score(pick.confidence), to_string(pick.stage), pick.reason]
      end
    )
  end

  defp shown(request, data, stage) do
    name = to_string(stage.stage)
    {shown, more} = Enum.split(stage.candidates, @max_candidates)

    tag(:section, [aria_labelledby: "stage-" <> name], [
      tag(:h2, [id: "stage-" <> name], [
        "Stage ",
        name,
        " ",
        status(stage.status),
        " ",
        if(stage[:duration],
          do: tag(:span, [class: "help"], milliseconds(stage.duration / 1000))
        )
      ]),
      if(stage.error, do: tag(:p, [class: "error"], Parts.sentence(stage.error))),
      if(shown == [] and stage.status == :ok, do: Parts.empty("It found nothing.")),
      if shown != [] do
        Parts.table(
          "Candidates, best first",
          ["Entry", "Confidence", "Score", "Words", "Meaning", "Reason"],
          for one <- shown do
            picked? = one.confidence >= data.threshold

            [
              entry(request, one.name),
              [score(one.confidence), if(picked?, do: [" ", Parts.badge("enough", :good)])],
              number(one[:score]),
              number(one[:words]),
              number(one[:similarity]),
              one.reason
            ]
          end
        )
      end,
      if(more != [], do: tag(:p, [], "and #{length(more)} more"))
    ])
  end

  defp status(:ok), do: nil
  defp status(:skipped), do: Parts.badge("not needed", :plain)
  defp status(:failed), do: Parts.badge("failed", :bad)
  defp status(:timeout), do: Parts.badge("too slow", :bad)

  # A bar beside its number, which `meter` draws without a style.
  defp score(confidence) do
    [
      tag(:meter, [min: 0, max: 1, value: confidence, aria_label: "Confidence"], ""),
      " ",
      decimals(confidence, 2)
    ]
  end

  defp number(nil), do: "none"
  defp number(number), do: decimals(number, 2)
end
