import { type Agent, request } from 'node:http'
import { TEST_KEY } from '../../support/start-gateway.ts'
import type { Outcome } from './fault-expectations.ts'
import { promptOf } from './fault-vendor.ts'
import type { CallForm } from './right-answer.ts'
import type { VendorFault } from './vendor-faults.ts'

/** One call of a drill. */
export interface DrillCall {
  /** Number of the call, which its answer contains. */
  readonly call: number
  readonly form: CallForm
  /** Ends the model's id: `chat-…`, `embeddings-…`, `image-…`. */
  readonly route: string
  readonly fault: VendorFault | undefined
}

/** Result of a call. `wrong` marks an answer that nobody should get, with the reason. */
export interface DrillAnswer {
  readonly outcome: Outcome | { readonly kind: 'wrong'; readonly why: string }
  readonly requestId: string
  readonly durationMs: number
}

const PATHS: Readonly<Record<CallForm, string>> = {
  chat: '/v1/chat/completions',
  stream: '/v1/chat/completions',
  embeddings: '/v1/embeddings',
  image: '/v1/images/generations',
}

/** Kinds of models that the calls name. */
export const DRILL_MODEL_KINDS = { chat: 'chat', embeddings: 'embedding', image: 'image' } as const

/** Makes one call and reads its answer to the end. */
export function makeCall(url: string, agent: Agent, drillCall: DrillCall): Promise<DrillAnswer> {
  const startedAtMs = performance.now()
  const body = JSON.stringify(bodyOf(drillCall))
  return new Promise((resolve, reject) => {
    const sent = request(
      `${url}${PATHS[drillCall.form]}`,
      {
        method: 'POST',
        agent,
        headers: {
          authorization: `Bearer ${TEST_KEY}`,
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
        },
      },
      (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (part: string) => {
          text += part
        })
        response.on('error', reject)
        response.on('end', () => {
          resolve({
            outcome: outcomeOf(drillCall, response.statusCode ?? 0, text),
            requestId: String(response.headers['x-request-id']),
            durationMs: performance.now() - startedAtMs,
          })
        })
      },
    )
    sent.on('error', reject)
    sent.end(body)
  })
}

function bodyOf({ call, form, route, fault }: DrillCall): object {
  const prompt = promptOf(call, fault)
  switch (form) {
    case 'embeddings':
      return { model: `embeddings-${route}`, input: prompt }
    case 'image':
      return { model: `image-${route}`, prompt }
    default: {
      const messages = [{ role: 'user', content: prompt }]
      return { model: `chat-${route}`, messages, max_tokens: 50, ...(form === 'stream' ? { stream: true } : {}) }
    }
  }
}

function outcomeOf(drillCall: DrillCall, status: number, text: string): DrillAnswer['outcome'] {
  const wrong = (why: string): DrillAnswer['outcome'] => ({
    kind: 'wrong',
    why: `${why}: ${status} ${text.slice(0, 300)}`,
  })
  try {
    if (status !== 200) {
      const { error } = JSON.parse(text) as { error: { code: string; type: string } }
      return { kind: 'refused', status, code: error.code, type: error.type }
    }
    if (drillCall.form === 'stream') return streamOutcome(drillCall, text) ?? wrong('not a stream for this call')
    return isWhole(drillCall, JSON.parse(text)) ? { kind: 'whole' } : wrong('not the answer to this call')
  } catch (error) {
    return wrong(String(error))
  }
}

/** Returns `undefined` if the stream is neither whole nor ended by an error event. */
function streamOutcome({ call }: DrillCall, text: string): Outcome | undefined {
  const events = text
    .trimEnd()
    .split('\n\n')
    .filter((event) => event.startsWith('data: '))
  const last = events.pop()?.slice('data: '.length)
  const isDone = last === '[DONE]'
  const parsed = events.map((event) => JSON.parse(event.slice('data: '.length)) as StreamedChunk)
  const content = parsed.map((chunk) => chunk.choices?.[0]?.delta?.content ?? '').join('')
  if (isDone) return content === `answer to ${call}, whole` ? { kind: 'whole' } : undefined
  if (last === undefined || text.includes('[DONE]') || content !== `answer to ${call}`) return undefined
  const { error } = JSON.parse(last) as StreamedChunk
  return error && { kind: 'broken', code: error.code, type: error.type }
}

interface StreamedChunk {
  readonly choices?: readonly { readonly delta?: { readonly content?: string } }[]
  readonly error?: { readonly code: string; readonly type: string }
}

interface WholeBody {
  readonly choices?: readonly { readonly message?: { readonly content?: string } }[]
  readonly data?: readonly { readonly embedding?: readonly number[]; readonly b64_json?: string }[]
}

function isWhole({ call, form }: DrillCall, body: WholeBody): boolean {
  switch (form) {
    case 'embeddings':
      return body.data?.[0]?.embedding?.[0] === call
    case 'image':
      return Buffer.from(body.data?.[0]?.b64_json ?? '', 'base64').toString() === `picture ${call}`
    default:
      return body.choices?.[0]?.message?.content === `answer to ${call}, whole`
  }
}
