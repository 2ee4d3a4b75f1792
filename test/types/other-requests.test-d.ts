import {
  type ChatCompletion,
  type ChatStream,
  ClientError,
  createClient,
  type ErrorCode,
  type MessageEvent,
  type SpeechEvent,
} from '../../src/client/index.ts'

const client = createClient({ baseURL: 'http://127.0.0.1:8787/v1', apiKey: 'sk-…', timeoutMs: 1_000, maxRetries: 0 })
const messages = [{ role: 'user' as const, content: 'hello' }]
const url = 'https://example.com/a.png'

// Chats: the answer follows `stream`.
const whole: ChatCompletion = await client.chat.completions.create({ model: 'cl-sonnet-4-6', messages })
const stream: ChatStream = await client.chat.completions.create({ model: 'gmn-2.5-pro', messages, stream: true })
stream.abort()
for await (const chunk of stream) void chunk.choices[0]?.delta.content
declare const wish: boolean
const either: ChatCompletion | ChatStream = await client.chat.completions.create({
  model: 'gmn-2.5-pro',
  messages,
  stream: wish,
})
await client.chat.completions.create({
  model: 'cl-opus-4-7',
  messages,
  // @ts-expect-error a slip of the pen
  temprature: 1,
})
await client.chat.completions.create({
  model: 'cl-opus-4-7',
  messages: [
    // @ts-expect-error no such role
    { role: 'robot', content: 'hello' },
  ],
})
await client.chat.completions.create({
  model: 'gpt-5.4',
  messages,
  verbosity: 'low',
  // @ts-expect-error a slip of the pen, at a model that needs no row
  temprature: 1,
})
// Fields in OpenAI's own SDK for these models.
await client.chat.completions.create({
  model: 'gpt-5.4',
  messages,
  modalities: ['text'],
  moderation: { model: 'omni-moderation-latest' },
  prompt_cache_options: { mode: 'explicit', ttl: '30m' },
})
await client.chat.completions.create({
  model: 'claude-haiku-4-5',
  messages,
  // @ts-expect-error a field of another vendor
  verbosity: 'low',
})
await client.chat.completions.create({ model: 'a-model-of-mine', messages, a_new_field: 1 })
await client.chat.completions.create({ model: 'cl-opus-4-7', messages }, { extraBody: { a_new_field: 1 } })

// Embeddings: the vector follows the encoding, sizes follow the model.
const plain = await client.embeddings.create({ model: 'vy-4', input: ['a'], dimensions: 512 })
const packed = await client.embeddings.create({ model: 'text-embedding-v4', input: 'a', encoding_format: 'base64' })
const numbers: number[] | undefined = plain.data[0]?.embedding
const floats: Float32Array | undefined = packed.data[0]?.embedding
await client.embeddings.create({ model: 'text-embedding-v4', input: 'a', dimensions: 100 })
await client.embeddings.create({
  model: 'vy-4-lite',
  input: 'a',
  // @ts-expect-error 256, 512, 1024 or 2048
  dimensions: 768,
})

// Speech: voices and formats follow the model, and so do instructions.
const sound = await client.audio.speech.create({ model: 'qw3-tts-flash', input: 'hello', voice: 'Ryan' })
const bytes: Uint8Array = await sound.bytes()
await client.audio.speech.create({
  model: 'qw3-tts-instruct-flash',
  input: 'hello',
  instructions: 'softly',
  voice: 'alloy',
})
await client.audio.speech.create({
  model: 'qw3-tts-instruct-flash',
  input: 'hello',
  // @ts-expect-error a voice of the basic model
  voice: 'Ryan',
})
await client.audio.speech.create({
  model: 'qw3-tts-instruct-flash',
  input: 'hello',
  // @ts-expect-error it speaks WAV only
  response_format: 'mp3',
})
await client.audio.speech.create({
  model: 'qw3-tts-flash',
  input: 'hello',
  // @ts-expect-error it takes none
  instructions: 'softly',
})

const events = await client.audio.speech.create({ model: 'qw3-tts-flash', input: 'hello', stream_format: 'sse' })
for await (const event of events) {
  const known: SpeechEvent['type'] = event.type
  void known
}
// @ts-expect-error events are no bytes
void events.bytes
await client.audio.speech.create({
  model: 'qw3-tts-flash',
  input: 'hello',
  // @ts-expect-error no such format
  stream_format: 'ws',
})

// Messages.
const message = await client.messages.create({ model: 'cl-opus-4-7', max_tokens: 10, messages })
const { input_tokens } = await client.messages.countTokens({ model: 'gmn-2.5-pro', messages })
for await (const event of await client.messages.stream({ model: 'cl-opus-4-7', max_tokens: 10, messages })) {
  const known: MessageEvent['type'] = event.type
  void known
}
// @ts-expect-error max_tokens is required
await client.messages.create({ model: 'cl-opus-4-7', messages })

const { balance } = await client.account.balance()
const available: boolean | undefined = (await client.models.list())[0]?.available

/** The class narrows what is caught. */
export function explain(error: unknown): ErrorCode | undefined {
  if (!ClientError.isInstance(error)) return undefined
  const facts: [number, string | undefined, number | undefined] = [
    error.status,
    error.requestId,
    error.retryAfterSeconds,
  ]
  return facts[0] === 429 ? error.code : undefined
}
export const seen = [whole, either, numbers, floats, bytes, message.content, input_tokens, balance.length, available]

const response = await client.responses.create({ model: 'gmn-2.5-pro', input: 'hello', max_output_tokens: 200 })
const continued = await client.responses.stream({
  model: 'a-model-of-mine',
  previous_response_id: response.id,
  input: [...response.output, { type: 'function_call_output', call_id: 'call_1', output: 'sunny' }],
})
for await (const event of continued)
  if (event.type === 'response.completed') event.response.usage satisfies object | null
// @ts-expect-error: the role is one of four
await client.responses.create({ model: 'gmn-2.5-pro', input: [{ role: 'model', content: 'hello' }] })
// @ts-expect-error: an input is required
await client.responses.create({ model: 'gmn-2.5-pro' })

// The vendor's own ids are narrowed like the public ones, and a model does not accept fields that it rejects.
await client.chat.completions.create({ model: 'claude-opus-4-7', messages, n: 1 })
await client.chat.completions.create({ model: 'gemini-2.5-pro', messages, n: 2 })
await client.chat.completions.create({
  model: 'cl-sonnet-4-6',
  messages,
  // @ts-expect-error one answer only
  n: 2,
})
await client.chat.completions.create({
  model: 'claude-sonnet-4-6',
  messages,
  // @ts-expect-error one answer only, under the vendor's id as well
  n: 2,
})
await client.chat.completions.create({
  model: 'claude-opus-4-7',
  messages,
  // @ts-expect-error a slip of the pen
  temprature: 1,
})
await client.embeddings.create({
  model: 'voyage-4-lite',
  input: 'a',
  // @ts-expect-error 256, 512, 1024 or 2048
  dimensions: 768,
})
await client.embeddings.create({
  model: 'text-embedding-v4',
  // @ts-expect-error it reads no token ids
  input: [1, 2, 3],
})
await client.embeddings.create({ model: 'text-embedding-3-small', input: [1, 2, 3] })
await client.audio.speech.create({
  model: 'qwen3-tts-instruct-flash',
  input: 'hello',
  // @ts-expect-error it speaks WAV only
  response_format: 'mp3',
})

// Marks for the prompt caches of vendors, wherever a dialect has them.
const mark = { type: 'ephemeral', ttl: '1h' } as const
const breakpoint = { mode: 'explicit' } as const
await client.messages.create({
  model: 'cl-opus-4-7',
  max_tokens: 10,
  system: [{ type: 'text', text: 'A long text.', cache_control: mark }],
  messages: [
    { role: 'user', content: [{ type: 'document', source: { type: 'text', data: 'A page.' }, cache_control: mark }] },
    { role: 'assistant', content: [{ type: 'tool_use', id: 't_1', name: 'time', input: {}, cache_control: mark }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't_1', content: 'noon', cache_control: mark }] },
  ],
})
await client.messages.create({
  model: 'cl-opus-4-7',
  max_tokens: 10,
  messages,
  // @ts-expect-error a slip of the pen
  system: [{ type: 'text', text: 'A long text.', cache_controll: mark }],
})
await client.chat.completions.create({
  model: 'cl-opus-4-7',
  messages: [
    { role: 'system', content: [{ type: 'text', text: 'A long text.', cache_control: mark }] },
    { role: 'user', content: [{ type: 'image_url', image_url: { url }, prompt_cache_breakpoint: breakpoint }] },
  ],
  tools: [{ type: 'function', function: { name: 'time' }, cache_control: mark }],
})
await client.chat.completions.create({
  model: 'cl-opus-4-7',
  // @ts-expect-error 5m or 1h
  messages: [{ role: 'user', content: [{ type: 'text', text: 'a', cache_control: { type: 'ephemeral', ttl: '2h' } }] }],
})
await client.responses.create({
  model: 'a-model-of-mine',
  input: [
    { role: 'user', content: [{ type: 'input_text', text: 'A long text.', prompt_cache_breakpoint: breakpoint }] },
  ],
  truncation: 'auto',
})
await client.responses.create({
  model: 'a-model-of-mine',
  input: 'hello',
  // @ts-expect-error auto or disabled
  truncation: 'always',
})

// Tools that Anthropic runs in addition to those of the caller.
await client.messages.create({
  model: 'cl-opus-4-7',
  max_tokens: 10,
  messages,
  tools: [
    { type: 'web_search_20250305', name: 'web_search', max_uses: 3 },
    { type: 'mcp_toolset', mcp_server_name: 'files' },
    { type: 'custom', name: 'time', input_schema: { type: 'object' }, cache_control: mark },
    { name: 'date', input_schema: { type: 'object' } },
  ],
})
await client.messages.create({
  model: 'cl-opus-4-7',
  max_tokens: 10,
  messages,
  // @ts-expect-error a tool of the caller's has a schema
  tools: [{ name: 'time' }],
})

// A moderation without a model is made by the default one, whose categories are known.
const judged = await client.moderations.create({ input: 'hello' })
const isHateful: boolean | null | undefined = judged.results[0]?.categories.hate
const judgedByMine = await client.moderations.create({ model: 'a-model-of-mine', input: 'hello' })
const isFlagged: boolean | undefined = judgedByMine.results[0]?.flagged
await client.moderations.create({
  // @ts-expect-error texts or parts
  input: 5,
})
export const judgements = [isHateful, isFlagged]
