/** A small chat request and its answer, as bytes. */
export const CHAT_REQUEST = Buffer.from(
  JSON.stringify({
    model: 'bench-chat',
    messages: [
      { role: 'system', content: 'You are a helpful assistant that answers in one short paragraph.' },
      { role: 'user', content: 'Why is the sky blue during the day and red in the evening? '.repeat(10) },
    ],
    temperature: 0.7,
    max_tokens: 300,
  }),
)

export const CHAT_ANSWER = Buffer.from(
  JSON.stringify({
    id: 'chatcmpl-bench',
    object: 'chat.completion',
    created: 1795132800,
    model: 'gpt-4.1-mini-2025-04-14',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: 'Blue light is scattered more than red light by the air. '.repeat(14),
          refusal: null,
        },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    usage: { prompt_tokens: 160, completion_tokens: 180, total_tokens: 340 },
  }),
)
