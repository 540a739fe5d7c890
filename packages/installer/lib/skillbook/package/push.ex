defmodule Skillbook.Package.Push do
  @moduledoc false
  # Sends entries of a view to another running book, which imports them into its store: one
  # request for each entry, with the token in a header.

  alias Skillbook.Package.{Outcome, Publish, Site}
  alias Skillbook.HTTP.Failure
  alias Skillbook.Support.{Hidden, JSON, Redact}
  alias Skillbook.{HTTP, PackageError, View}

  @max_answer 64 * 1024
  @timeout 60_000

  @doc "See `Skillbook.Package.publish/3`."
  def run(view, entries, address, options) do
    with {:ok, {place, nil}} <- Site.identify(address) do
      outcomes =
        for {name, entry} <- Publish.names(entries) do
          options[:progress].("sending #{name}")
          Outcome.new(name, send_entry(view, entry, name, base(place), options))
        end

      {:ok, outcomes}
    else
      {:ok, {place, _name}} -> PackageError.new(:option, place, "is given with a name after #")
      error -> error
    end
  end

  defp base(place) do
    if place =~ ~r{/\.well-known/agent-skills\z},
      do: place,
      else: place <> "/.well-known/agent-skills"
  end

  defp send_entry(view, entry, name, base, options) do
    with {:ok, entry} <- View.fetch(view, entry.name),
         {:ok, skill, bytes} <- Publish.artifact(view, entry, name),
         :ok <- only_page(skill) do
      request = [
        method: :put,
        url: base <> "/" <> skill.path,
        headers: fn -> headers(options[:token]) end,
        body: bytes
      ]

      http =
        [max_body: @max_answer, timeout: @timeout]
        |> Keyword.merge(options[:http] || [])
        |> Keyword.put(:redirects, 0)

      answer(HTTP.request(request, http), name, base, options[:token])
    end
  end

  defp headers(token) do
    [{"content-type", "text/markdown; charset=utf-8"}, {"accept", "application/json"}] ++
      if(token, do: [{"authorization", "Bearer " <> token.()}], else: [])
  end

  defp only_page(%{files?: false}), do: :ok

  defp only_page(skill) do
    PackageError.new(
      :skill,
      skill.name,
      "has more files, which the store of another book cannot hold",
      "publish into a folder, from which it is installed"
    )
  end

  @actions %{"imported" => :published, "updated" => :updated, "unchanged" => :unchanged}

  defp answer({:ok, %{status: status, body: body}}, name, base, token) do
    case {status, JSON.decode(body)} do
      {status, {:ok, %{"action" => action}}} when status in [200, 201] ->
        if action = @actions[action], do: {:ok, action, nil, nil}, else: unknown(base, status)

      {status, {:ok, %{"error" => error}}} when is_binary(error) ->
        message = "was refused by #{base} (status #{status}): #{said(error, token)}"
        PackageError.new(:source, name, message, token_hint(status))

      _ ->
        unknown(base, status)
    end
  end

  defp answer({:error, error}, _name, base, _token),
    do: PackageError.new(:source, base, "could not be reached: #{Exception.message(error)}")

  # The text is a stranger's, for a terminal, and may repeat the token.
  defp said(text, token) do
    secrets = if token, do: [token.()], else: []
    text |> Redact.secrets(secrets, "[token]") |> Failure.excerpt() |> Hidden.visible()
  end

  defp token_hint(401),
    do: "set the variable SKILLBOOK_TOKEN, or the option :token, to a token of that book"

  defp token_hint(_status), do: nil

  defp unknown(base, status) do
    PackageError.new(
      :source,
      base,
      "is not a book that takes skills: its answer has the status #{status}",
      "write the address of a running `skillbook serve`"
    )
  end
end
