defmodule Skillbook.Web.Page.SignIn do
  @moduledoc false
  # Signs people in to accounts at vendors, by `Skillbook.Connections` as the command line does.
  #
  # | request | |
  # |---|---|
  # | `POST /connections/ACCOUNT/connect` | begins, and leads the browser to the vendor |
  # | `GET /connections/ACCOUNT/callback` | the vendor's redirect, which leads to the next one |
  # | `GET /connections/ACCOUNT/finish` | takes the vendor's answer |
  #
  # The redirect comes from another website, without a cookie of ours: the callback knows nobody
  # and changes nothing. The answer waits in a cookie for the request of the session, so that the
  # code is in no other address, and not in the history of the browser.
  #
  # A sign-in belongs to the profile, to the session, to the browser, which gets a random cookie,
  # and to the address of the account's callback.

  import Skillbook.Web.Html, only: [tag: 3]
  import Skillbook.Web.Page.Report, only: [book: 1]

  alias Skillbook.{ConnectionError, Connections}
  alias Skillbook.Web.{Access, Cookie, Form, Request, Response, Secrets}
  alias Skillbook.Web.Page.{Layout, Rights}

  # Seconds: the life of a sign-in, and that of an answer on its way.
  @browser 600
  @answer 60
  # Bytes; browsers keep cookies of 4 KB with their name.
  @max_answer 3_900

  @doc "The address of an account's callback, or the reason why none leads to this browser."
  @spec redirect(Request.t(), Skillbook.Web.t(), atom()) ::
          {:ok, String.t()} | {:error, String.t()}
  def redirect(request, web, account) do
    if Access.at_url?(request, web) do
      {:ok, Request.url(request, web, path(account, "callback"))}
    else
      {:error,
       "A sign-in leads back to #{web.url || "the address of the option :url"}. " <>
         "Open this page there to connect an account."}
    end
  end

  defp path(account, name), do: ["connections", to_string(account), name]

  @doc "Leads the browser to the vendor."
  def begin(request, %{account: name, web: web}) do
    with_account(request, name, web, fn one, options ->
      browser = browser(request, web)

      with {:ok, fields} <- Request.form(request),
           {:ok, commands} <- chosen(fields, one),
           options = commands ++ [session: session(request, browser)] ++ options,
           {:ok, %{url: url}} <- Connections.authorize(book(request), one.account, options) do
        request |> forward(url) |> Cookie.put(request, web, browser, @browser, :browser)
      else
        :error -> Layout.failed(request, 400, "The form could not be read.")
        {:none, text} -> Layout.failed(request, 400, text)
        {:error, error} -> failed(request, web, error)
      end
    end)
  end

  # Calls the function with the account and the options of `Skillbook.Connections`, if the caller
  # may sign in to it. An account that the profile may not use does not exist.
  defp with_account(request, name, web, function) do
    Rights.with_writes(request, fn ->
      profile = request.caller.profile

      with {:ok, accounts} <- Connections.sign_ins(book(request), profile),
           %{} = one <- Enum.find(accounts, &(to_string(&1.account) == name)),
           {:ok, redirect} <- redirect(request, web, one.account) do
        function.(one, profile: profile.id, redirect: redirect)
      else
        nil -> Layout.not_found(request)
        {:error, text} when is_binary(text) -> Layout.failed(request, 400, text)
        {:error, error} -> Layout.failed(request, 503, Exception.message(error))
      end
    end)
  end

  # A redirect of a form would need the vendor in the Content-Security-Policy.
  defp forward(request, url) do
    host = URI.parse(url).host
    help = tag(:p, [], "You come back to this page after it.")
    Layout.forward(request, "Sign in at #{host}", url, "Go on to #{host}", help)
  end

  # A name that is not one of these commands does not exist. A server names its scopes itself.
  defp chosen(_fields, %{server: server}) when server != nil, do: {:ok, []}

  defp chosen(fields, one) do
    case Enum.filter(one.commands, &(&1 in List.wrap(fields["for"]))) do
      [] -> {:none, "Go back, and tick the commands that the connection is for."}
      commands -> {:ok, [for: commands]}
    end
  end

  # Two sign-ins at once share it.
  defp browser(request, web) do
    case Cookie.get(request, web, :browser) do
      <<secret::binary-size(43)>> -> if(secret =~ ~r/\A[\w-]+\z/, do: secret, else: new())
      _none -> new()
    end
  end

  defp new, do: Secrets.random().()

  defp session(request, browser), do: Secrets.hash("#{browser}.#{request.caller.csrf}")

  @doc "Takes the browser back from the vendor, to the request of the session."
  def callback(request, %{account: name, web: web}) do
    query = Request.query(request)

    answer =
      for field <- ~w(state code error iss), is_binary(query[field]), do: {field, query[field]}

    value = URI.encode_query(answer, :rfc3986)

    response =
      if byte_size(value) <= @max_answer do
        title = "Back from the sign-in"
        to = Request.path(request, path(name, "finish"))

        request
        |> Layout.forward(title, to, "Finish connecting the account")
        |> Cookie.put(request, web, value, @answer, :answer)
      else
        text = "The vendor's answer has more than #{@max_answer} bytes. Nothing was changed."
        Layout.plain(request, 400, "The account was not connected", tag(:p, [], text))
      end

    # Requests for the style would name the address, with the code.
    Response.put_header(response, "referrer-policy", "no-referrer")
  end

  @doc "Takes the vendor's answer, and shows the connection or the reason why there is none."
  def finish(request, %{account: name, web: web}) do
    response =
      with_account(request, name, web, fn _one, options ->
        options = [session: session(request, Cookie.get(request, web, :browser))] ++ options

        case Connections.complete(book(request), answer(request, web), options) do
          {:ok, connection} ->
            query = [connected: connection.account]
            Response.redirect(303, Request.path(request, ["connections"], query))

          {:error, error} ->
            failed(request, web, error)
        end
      end)

    Cookie.delete(response, request, web, :answer)
  end

  defp answer(request, web) do
    with value when is_binary(value) <- Cookie.get(request, web, :answer),
         {:ok, fields} <- Form.urlencoded(value),
         do: fields,
         else: (_none -> %{})
  end

  # Errors

  defp failed(request, web, error) do
    {status, text, help} = reason(error)
    Skillbook.Web.Page.Connections.show(request, web, problem: text, help: help, status: status)
  end

  defp reason(%ConnectionError{kind: :state}) do
    {400,
     "This sign-in cannot be used. It was used before, it began more than 10 minutes ago, or " <>
       "it began in another browser or session",
     "Nothing was changed. Press Connect to begin again."}
  end

  defp reason(%ConnectionError{kind: :denied} = error) do
    {403, Exception.message(error),
     "Nothing was changed. To connect the account, press Connect, and allow the access there."}
  end

  defp reason(%ConnectionError{kind: :unavailable} = error) do
    {502, Exception.message(error),
     "Nothing was changed. Press Connect to try again in a few minutes."}
  end

  defp reason(%ConnectionError{kind: :refused} = error) do
    {502, Exception.message(error),
     "Nothing was changed. An operator has to compare the client's id and secret, and the " <>
       "redirect address below, with those at the vendor."}
  end

  defp reason(%ConnectionError{kind: :discovery} = error) do
    {502, Exception.message(error),
     "Nothing was changed. The operator of the server has to mend this."}
  end

  defp reason(error),
    do: {503, Exception.message(error), "Nothing was changed. An operator has to mend this."}
end
