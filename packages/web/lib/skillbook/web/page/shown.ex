defmodule Skillbook.Web.Page.Shown do
  @moduledoc false
  # Remembers, for the page, the last two different prompts that it showed of a profile and
  # format, so that it can show the difference after a reload. They are kept in memory only: a
  # text instead of a view, since a view would keep a whole generation of the catalog.
  #
  # A row belongs to the rights of a profile, so a profile with other rights never gets the text
  # of before.

  alias Skillbook.Book.Cache
  alias Skillbook.{Profile, View}

  # Longer prompts are not remembered.
  @max_bytes 256 * 1024

  @type shown :: %{at: DateTime.t(), text: String.t()}

  @doc """
  Remembers a prompt, made with these options, and returns the last one that differs, or `nil`.
  """
  @spec put(View.t(), keyword(), String.t(), DateTime.t()) :: shown() | nil
  def put(%View{} = view, options, text, now) do
    key = key(view.profile, options)

    case Cache.fetch(view.book, PromptShown, key) do
      {:ok, {%{text: ^text}, earlier}} ->
        earlier

      {:ok, {earlier, _older}} ->
        remember(view.book, key, %{at: now, text: text}, earlier)
        earlier

      :error ->
        remember(view.book, key, %{at: now, text: text}, nil)
        nil
    end
  end

  defp remember(book, key, %{text: text} = shown, earlier) do
    if byte_size(text) <= @max_bytes, do: Cache.put(book, PromptShown, key, {shown, earlier})
  end

  defp key(profile, options) do
    rights =
      {Profile.ids(profile), profile.tenant, profile.grants, Profile.globs(profile),
       profile.writes}

    Cache.key({rights, options})
  end
end
