defmodule Skillbook.Test.CloudModel do
  @moduledoc false
  # The module of a vendor that is not in the library: its servers have addresses of their own
  # with a version, as those of Azure and Vertex AI, and take two kinds of keys.

  alias Skillbook.HTTP.Service
  alias Skillbook.Model.Answer
  alias Skillbook.Support.Options

  use Skillbook.Model.Client,
    vendor: "cloud",
    provider: "cloud.ai",
    home: {"https://api.cloud.example", "CLOUD_API_KEY"},
    missing: [:grammar],
    options: [
      auth: [:api_key, :bearer],
      version: {String.t(), "2026-01-01", {"text", &Options.text?/1}}
    ]

  @impl true
  def endpoint(url, model) do
    url = Service.endpoint(url, "deployments/#{model.model}/chat", "ai")
    %{url | query: "api-version=" <> model.version}
  end

  @impl true
  def headers(%{auth: :api_key}, key, _body) when key != nil, do: [{"api-key", key.()}]
  def headers(_model, key, _body), do: Service.bearer(key)

  @impl true
  def body(_model, messages, options),
    do: %{"prompt" => List.last(messages).content, "limit" => options[:max_tokens]}

  @impl true
  def event(%{"text" => text} = event, answer) do
    answer
    |> Answer.add_text(text)
    |> Answer.finish(event["end"], %{"all" => :stop, "limit" => :length})
    |> Answer.usage(event["tokens"],
      prompt_tokens: "in",
      completion_tokens: &(&1["out"] + &1["thought"]),
      cached_tokens: {"of_them", "cached"}
    )
  end

  def event(event, answer), do: Answer.without(answer, event, "text")

  @impl true
  def whole(%{"text" => _text} = body, answer), do: event(body, answer)
  def whole(_body, _answer), do: nil
end
