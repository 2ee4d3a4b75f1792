import { type ChatRequest, GatewayError, type Usage, type Vendor, type VendorFailure } from '../../../src/index.ts'

/** Vendor's message: all members in a whole answer, some of them in each event of a stream. */
interface ParrotAnswer {
  id?: string
  text?: string
  stop?: 'done' | 'limit'
  tokens?: { in: number; out: number }
}

const STOPS = { done: 'stop', limit: 'length' } as const
const TAKEN = ['model', 'messages', 'max_tokens', 'max_completion_tokens', 'stream', 'stream_options']

/** Parrot: chat, text only. */
export function parrot(options: { apiKey?: string | undefined; origin?: string } = {}): Vendor {
  return {
    id: 'parrot',
    displayName: 'Parrot',
    origin: options.origin ?? 'https://parrot.example',
    apiKeys: options.apiKey ? [options.apiKey] : [],
    configuredBy: 'parrot({ apiKey })',
    models: [{ id: 'parrot-1', kind: 'chat', vendor: 'parrot', limits: { maxOutputTokens: 1000 } }],
    chat: {
      toWire: ({ request, model, apiKey, stream }) => ({
        path: '/speak',
        headers: ['content-type', 'application/json', 'accept-encoding', 'identity', 'x-parrot-key', apiKey],
        body: JSON.stringify({
          voice: model.upstream,
          lines: request.messages.map(lineFrom),
          limit: request.max_completion_tokens ?? request.max_tokens ?? undefined,
          stream,
        }),
        dropped: Object.keys(request).filter((field) => !TAKEN.includes(field) && request[field] != null),
      }),
      fromWire({ body }, { publicModel: model, nowMs }) {
        const { id, text, stop, tokens = { in: 0, out: 0 } } = parse(Buffer.from(body).toString()) ?? {}
        if (id === undefined || text === undefined || stop === undefined) return undefined
        const message = { role: 'assistant' as const, content: text, refusal: null }
        const choices = [{ index: 0, message, logprobs: null, finish_reason: STOPS[stop] }]
        const created = Math.floor(nowMs / 1000)
        const total = tokens.in + tokens.out
        const usage = { prompt_tokens: tokens.in, completion_tokens: tokens.out, total_tokens: total }
        return {
          completion: { id, object: 'chat.completion', created, model, choices, usage },
          usage: total === 0 ? undefined : usageFrom(tokens),
        }
      },
      decoder(_call, writer) {
        const utf8 = new TextDecoder()
        const state = { isComplete: false, failure: undefined, usage: undefined } as {
          isComplete: boolean
          failure: VendorFailure | undefined
          usage: Usage | undefined
        }
        let rest = ''
        const read = (event: ParrotAnswer | undefined) => {
          if (event === undefined) state.failure ??= { kind: 'invalid_response', status: 0, message: 'no JSON' }
          if (event?.id !== undefined) writer.start(event.id)
          if (event?.text !== undefined) writer.text(event.text)
          if (event?.tokens !== undefined) state.usage = usageFrom(event.tokens)
          if (event?.stop === undefined) return
          writer.finish(STOPS[event.stop])
          state.isComplete = true
        }
        return Object.assign(state, {
          push(chunk: Uint8Array) {
            const lines = (rest + utf8.decode(chunk, { stream: true })).split('\n')
            rest = lines.pop() ?? ''
            for (const line of lines) if (line.startsWith('data: ')) read(parse(line.slice(6)))
          },
          end() {},
        })
      },
    },
    errorFrom({ status, body }) {
      const message = Buffer.from(body).toString()
      if (status === 401 || status === 403) return { kind: 'operator', status, message }
      if (status === 429) return { kind: 'rate_limited', status, message }
      if (status >= 500) return { kind: 'unavailable', status, message }
      return { kind: status >= 400 ? 'caller' : 'invalid_response', status, message }
    },
  }
}

function lineFrom({ role, content }: ChatRequest['messages'][number]) {
  if (typeof content !== 'string') throw new GatewayError('unsupported_parameter', { param: 'messages' })
  return { role, text: content }
}

function usageFrom(tokens: { in: number; out: number }): Usage {
  return { inputTokens: tokens.in, outputTokens: tokens.out }
}

function parse(json: string): ParrotAnswer | undefined {
  try {
    return JSON.parse(json) as ParrotAnswer
  } catch {
    return undefined
  }
}
