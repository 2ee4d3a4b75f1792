import { connect } from 'node:net'
import { dialectOf, FALLING_MODEL, formOf } from './exit-forms.ts'
import type { ExitPlan } from './exit-plan.ts'

interface ExitRequest {
  readonly path: string
  readonly contentType: string
  readonly body: Uint8Array
}

/** Whether a plan asks twice under an Idempotency-Key. */
export function isKeyed({ kind }: ExitPlan): boolean {
  return kind === 'replay' || kind === 'caller leaves, asks again'
}

/**
 * Posts the request of a plan on a socket of its own and resolves with the head of the answer once the connection is closed.
 * @param arrived Resolves once the call has arrived at the vendor. If omitted, the caller stays.
 */
export async function postExit(
  url: string,
  plan: ExitPlan,
  key: string,
  arrived: (() => Promise<void>) | undefined,
): Promise<string> {
  const { hostname, port } = new URL(url)
  const { path, contentType, body } = await requestOf(plan)
  const socket = connect(Number(port), hostname)
  let head = ''
  let byteLength = 0
  // The caller of a stream disconnects after a number of bytes, and the caller of a whole answer while it is made.
  const leavesStream = arrived !== undefined && plan.isStream
  const leaveAfter = leavesStream ? plan.at * dialectOf(plan).streamBytes(plan) : Number.POSITIVE_INFINITY
  socket.on('error', () => undefined)
  socket.on('data', (chunk) => {
    byteLength += chunk.byteLength
    if (head.length < 4_096) head += chunk.toString('latin1')
    if (byteLength > leaveAfter) socket.destroy()
  })
  socket.write(
    `POST ${path} HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${key}\r\ncontent-type: ${contentType}\r\n${
      isKeyed(plan) ? `idempotency-key: exit-${plan.id}\r\n` : ''
    }content-length: ${body.byteLength}\r\nconnection: close\r\n\r\n`,
  )
  socket.write(body)
  if (arrived !== undefined && (!plan.isStream || leaveAfter < 200))
    void arrived().then(() => setTimeout(() => socket.destroy(), plan.at * (plan.isStream ? 10 : 40)))
  return new Promise((resolve) => socket.on('close', () => resolve(head)))
}

/** Submits the task of a plan and returns the path at which it is read. */
export async function submitExit(url: string, plan: ExitPlan, key: string): Promise<string> {
  const { path, contentType, body } = await (formOf(plan).task === 'batch' ? batchOf(url, plan, key) : requestOf(plan))
  const { id } = await ask(url, key, 'POST', path, { body, headers: { 'content-type': contentType } })
  return `${path}/${String(id)}`
}

/** A JSON answer of the gateway. */
export async function ask(
  url: string,
  key: string,
  method: string,
  path: string,
  { body = null, headers = {} }: { readonly body?: Uint8Array | FormData | null; readonly headers?: object } = {},
): Promise<Record<string, unknown>> {
  const all = { authorization: `Bearer ${key}`, connection: 'close', ...headers }
  const answer = await fetch(`${url}${path}`, { method, headers: all, body: body as BodyInit | null })
  const text = await answer.text()
  // A batch that has ended meanwhile cannot be cancelled.
  if (!answer.ok && answer.status !== 409) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
  return JSON.parse(text) as Record<string, unknown>
}

async function batchOf(url: string, plan: ExitPlan, key: string): Promise<ExitRequest> {
  const { path, request } = formOf(plan)
  const { lines } = request(plan) as { readonly lines: readonly object[] }
  const endpoint = '/v1/chat/completions'
  const file = lines
    .map((body, index) => ({
      custom_id: `line-${index}`,
      method: 'POST',
      url: endpoint,
      body: { model: plan.model, ...body },
    }))
    .map((line) => JSON.stringify(line))
    .join('\n')
  const form = new FormData()
  form.set('purpose', 'batch')
  form.set('file', new File([file], 'lines.jsonl'))
  const { id } = await ask(url, key, 'POST', '/v1/files', { body: form })
  return jsonRequest(path, { input_file_id: id, endpoint, completion_window: '24h' })
}

async function requestOf(plan: ExitPlan): Promise<ExitRequest> {
  const { path, request } = formOf(plan)
  const members = { model: plan.kind === 'fallback' ? FALLING_MODEL : plan.model, ...request(plan) }
  if (!('file' in members)) return jsonRequest(path, members)
  const form = new FormData()
  for (const [name, value] of Object.entries(members))
    if (value instanceof Uint8Array)
      form.set(name, new File([new Uint8Array(value)], 'talk.wav', { type: 'audio/wav' }))
    else form.set(name, String(value))
  const encoded = new Response(form)
  const contentType = encoded.headers.get('content-type') ?? ''
  return { path, contentType, body: new Uint8Array(await encoded.arrayBuffer()) }
}

function jsonRequest(path: string, value: object): ExitRequest {
  return { path, contentType: 'application/json', body: new TextEncoder().encode(JSON.stringify(value)) }
}
