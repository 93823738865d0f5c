// The feature bot with telebot v3. The library is unmodified; only the API root is set.
//
// Prints `ready` before it gets updates, and `failed: ...` if a handler fails. Runs until SIGTERM.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	tele "gopkg.in/telebot.v3"
)

var kinds = []string{"message", "callback_query", "inline_query", "chosen_inline_result", "poll_answer"}

var number = regexp.MustCompile(`^\d+$`)

var picture = os.Getenv("PICTURE")

func photo() *tele.Photo { return &tele.Photo{File: tele.FromDisk(picture)} }

func menu(n int) *tele.ReplyMarkup {
	markup := &tele.ReplyMarkup{}
	markup.Inline(markup.Row(tele.Btn{Text: "+", Data: fmt.Sprintf("add:%d", n)}))
	return markup
}

// member returns the member whose id the command names.
func member(c tele.Context) *tele.ChatMember {
	id, _ := strconv.ParseInt(c.Message().Payload, 10, 64)
	return &tele.ChatMember{User: &tele.User{ID: id}}
}

func press(c tele.Context) error {
	n, err := strconv.Atoi(strings.TrimPrefix(c.Callback().Data, "add:"))
	if err != nil {
		return err
	}
	n++
	if err := c.Respond(&tele.CallbackResponse{Text: fmt.Sprintf("now %d", n), ShowAlert: n == 3}); err != nil {
		return err
	}
	// The edit of an inline message returns true, which the library reports as this error.
	if err := c.Edit(fmt.Sprintf("count %d", n), menu(n)); !errors.Is(err, tele.ErrTrueResult) {
		return err
	}
	return nil
}

func sendPhoto(c tele.Context) error {
	sent := photo()
	sent.Caption = "*" + c.Message().Payload + "*"
	return c.Reply(sent, tele.ModeMarkdownV2)
}

func sendAlbum(c tele.Context) error {
	sent, err := c.Bot().Send(c.Chat(), photo())
	if err != nil {
		return err
	}
	stored := tele.File{FileID: sent.Photo.FileID}
	return c.SendAlbum(tele.Album{
		&tele.Photo{File: stored, Caption: "one"},
		&tele.Photo{File: stored, Caption: "two"},
	})
}

func sendFile(c tele.Context) error {
	content := tele.FromReader(strings.NewReader(c.Message().Payload))
	sent, err := c.Bot().Send(c.Chat(), &tele.Document{File: content, FileName: "notes.txt"})
	if err != nil {
		return err
	}
	reader, err := c.Bot().File(&sent.Document.File)
	if err != nil {
		return err
	}
	defer reader.Close()
	text, err := io.ReadAll(reader)
	if err != nil {
		return err
	}
	return c.Send("file: " + string(text))
}

func showKeys(c tele.Context) error {
	markup := &tele.ReplyMarkup{ResizeKeyboard: true}
	markup.Reply(markup.Row(markup.Text("Yes"), markup.Text("No")))
	return c.Send("Sure?", markup)
}

func sendPoll(c tele.Context) error {
	poll := &tele.Poll{Type: tele.PollRegular, Question: "What?"}
	poll.AddOptions("tea", "milk")
	return c.Send(poll)
}

func vote(c tele.Context) error {
	answer := c.PollAnswer()
	chosen := make([]string, len(answer.Options))
	for i, option := range answer.Options {
		chosen[i] = strconv.Itoa(option)
	}
	_, err := c.Bot().Send(answer.Sender, "voted "+strings.Join(chosen, ","))
	return err
}

func closePoll(c tele.Context) error {
	poll, err := c.Bot().StopPoll(c.Message().ReplyTo)
	if err != nil {
		return err
	}
	counts := make([]string, len(poll.Options))
	for i, option := range poll.Options {
		counts[i] = fmt.Sprintf("%s %d", option.Text, option.VoterCount)
	}
	return c.Send("closed: " + strings.Join(counts, ", "))
}

func welcome(c tele.Context) error {
	return c.Send("Welcome, " + c.Message().UserJoined.FirstName)
}

func mute(c tele.Context) error {
	muted := member(c)
	muted.Rights = tele.NoRights()
	if err := c.Bot().Restrict(c.Chat(), muted); err != nil {
		return err
	}
	return c.Send("muted")
}

func promote(c tele.Context) error {
	promoted := member(c)
	promoted.Rights = tele.Rights{CanPinMessages: true}
	if err := c.Bot().Promote(c.Chat(), promoted); err != nil {
		return err
	}
	admins, err := c.Bot().AdminsOf(c.Chat())
	if err != nil {
		return err
	}
	for _, each := range admins {
		if each.User.ID == promoted.User.ID {
			return c.Send(fmt.Sprintf("pins: %t", each.CanPinMessages))
		}
	}
	return errors.New("the promoted member is not listed")
}

func name(c tele.Context) error {
	bot, chat, title := c.Bot(), c.Chat(), c.Message().Payload
	if err := bot.SetGroupTitle(chat, title); err != nil {
		return err
	}
	if err := bot.SetGroupDescription(chat, "About "+title); err != nil {
		return err
	}
	if err := bot.SetGroupPhoto(chat, photo()); err != nil {
		return err
	}
	if err := bot.Pin(c.Message()); err != nil {
		return err
	}
	now, err := bot.ChatByID(chat.ID)
	if err != nil {
		return err
	}
	hasPhoto := "no photo"
	if now.Photo != nil {
		hasPhoto = "photo"
	}
	return c.Send(strings.Join([]string{now.Title, now.Description, hasPhoto, now.PinnedMessage.Text}, ", "))
}

func ban(c tele.Context) error {
	banned := member(c)
	var refusal *tele.Error
	if err := c.Bot().Ban(c.Chat(), banned); errors.As(err, &refusal) {
		return c.Send(refusal.Description)
	} else if err != nil {
		return err
	}
	found, err := c.Bot().ChatMemberOf(c.Chat(), banned.User)
	if err != nil {
		return err
	}
	return c.Send(string(found.Role))
}

// asked has the answers that each person gave so far. Handlers run one after the other.
var asked = map[int64][]string{}

func order(c tele.Context) error {
	asked[c.Sender().ID] = []string{}
	return c.Send("How many?")
}

func converse(c tele.Context) error {
	id, text := c.Sender().ID, c.Text()
	given, asking := asked[id]
	switch {
	case asking && len(given) == 0 && !number.MatchString(text):
		return c.Send("A number, please.")
	case asking && len(given) == 0:
		asked[id] = []string{text}
		return c.Send("To which city?")
	case asking:
		delete(asked, id)
		return c.Send(given[0] + " to " + text)
	case text == "Yes" || text == "No":
		return c.Send("You said "+text, tele.RemoveKeyboard)
	}
	return nil
}

func answerInline(c tele.Context) error {
	results := tele.Results{}
	for _, by := range []string{"1", "2"} {
		result := &tele.ArticleResult{Title: c.Query().Text + " " + by}
		result.SetResultID(by)
		result.SetContent(&tele.InputTextMessageContent{Text: "count 0"})
		result.SetReplyMarkup(menu(0))
		results = append(results, result)
	}
	return c.Answer(&tele.QueryResponse{Results: results, CacheTime: 300})
}

func chosen(c tele.Context) error {
	result := c.InlineResult()
	_, err := c.Bot().Send(result.Sender, "chose "+result.ResultID)
	return err
}

func poller() tele.Poller {
	port := os.Getenv("HOOK_PORT")
	if port == "" {
		return &tele.LongPoller{Timeout: time.Second, AllowedUpdates: kinds}
	}
	certificate := &tele.WebhookTLS{Cert: os.Getenv("CERTIFICATE"), Key: os.Getenv("CERTIFICATE_KEY")}
	return &tele.Webhook{
		Listen:         "127.0.0.1:" + port,
		TLS:            certificate,
		AllowedUpdates: kinds,
		SecretToken:    os.Getenv("SECRET"),
	}
}

func fail(err error, _ tele.Context) { fmt.Printf("failed: %v\n", err) }

func main() {
	bot, err := tele.NewBot(tele.Settings{
		URL:         os.Getenv("API_ROOT"),
		Token:       os.Getenv("BOT_TOKEN"),
		Poller:      poller(),
		Synchronous: true,
		OnError:     fail,
	})
	if err != nil {
		fail(err, nil)
		os.Exit(1)
	}
	handlers := map[string]tele.HandlerFunc{
		"/menu":  func(c tele.Context) error { return c.Send("count 0", menu(0)) },
		"/photo": sendPhoto, "/album": sendAlbum, "/file": sendFile, "/keys": showKeys,
		"/poll": sendPoll, "/close": closePoll, "/mute": mute, "/promote": promote, "/name": name,
		"/ban": ban, "/order": order,
		tele.OnText: converse, tele.OnUserJoined: welcome, tele.OnCallback: press,
		tele.OnQuery: answerInline, tele.OnInlineResult: chosen, tele.OnPollAnswer: vote,
	}
	for endpoint, handler := range handlers {
		bot.Handle(endpoint, handler)
	}
	fmt.Println("ready")
	bot.Start()
}
