package usage

import (
	"fmt"
	"strings"
)

// A Fields says which fields of an answer are read. It is safe for concurrent use.
type Fields struct{ root *node }

// Models has the fields of the APIs of all language models. So the API of a server need not be known.
var Models = func() *Fields {
	root := &node{}
	root.items = root // in Gemini, without server-sent events, the answer is an array with the contents of the events
	root.descend("usage").field = fUsage
	for _, path := range [][]string{{"usage"}, {"response", "usage"}, {"message", "usage"}, {"x_groq", "usage"}} {
		setFields(root.descend(path...), map[string]field{
			"prompt_tokens": fInput, "completion_tokens": fOutput, "total_tokens": fTotal, // OpenAI
			"input_tokens": fInput, "output_tokens": fOutput, // OpenAI's responses, and Anthropic
			"prompt_tokens_details.cached_tokens": fCachedIn, "input_tokens_details.cached_tokens": fCachedIn,
			"cache_read_input_tokens": fCacheRead, "cache_creation_input_tokens": fCacheWrite, // Anthropic
			"inputTokens": fInput, "outputTokens": fOutput, "totalTokens": fTotal, // Bedrock
			"cacheReadInputTokens": fCacheRead, "cacheWriteInputTokens": fCacheWrite,
		})
	}
	root.descend("usageMetadata").field = fMeta
	setFields(root.descend("usageMetadata"), map[string]field{ // Gemini
		"promptTokenCount": fInput, "toolUsePromptTokenCount": fToolInput, "candidatesTokenCount": fOutput,
		"thoughtsTokenCount": fThoughts, "cachedContentTokenCount": fCachedIn, "totalTokenCount": fTotal,
	})
	setFields(root, map[string]field{
		"prompt_eval_count": fInput, "eval_count": fOutput, "done": fDone, "type": fType, "choices.[]": fChoice,
		"candidates.[].finishReason": fFinish,
	})
	for _, path := range []string{
		"choices.[].delta", "choices.[].message", "choices.[].text", "delta", "content", "content_block", "output",
		"candidates.[].content", "message.content", "message.thinking",
	} {
		text := root.descend(strings.Split(path, ".")...)
		text.field, text.recursive = fText, true
		for _, name := range []string{"type", "role", "id", "stop_reason", "signature", "status", "model", "object"} {
			text.descend(name)
		}
	}
	root.descend("response").field = fText // Ollama; in OpenAI's responses, it is an object
	return &Fields{root}
}()

func setFields(root *node, fields map[string]field) {
	for path, f := range fields {
		root.descend(strings.Split(path, ".")...).field = f
	}
}

const maxPath = 8

// Path returns a Fields that reads one number. The text is the path of keys to the number, such as "usage.total". It
// must have 1 to 8 keys, and no key may be empty.
func Path(text string) (*Fields, error) {
	keys := strings.Split(text, ".")
	if len(keys) > maxPath {
		return nil, fmt.Errorf("a path of %d keys: want at most %d", len(keys), maxPath)
	}
	for _, key := range keys {
		if key == "" || len(key) > maxText {
			return nil, fmt.Errorf("the path %q has a key of %d bytes: want 1 to %d", text, len(key), maxText)
		}
	}
	root := &node{}
	root.descend(keys...).field = fCost
	return &Fields{root}, nil
}
