import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { listen } from './listen.ts'

/** A request of a batch as the vendor got it. */
export interface VendorLine {
  readonly custom_id: string
  readonly method: string
  readonly url: string
  readonly body: { readonly model: string; readonly messages?: readonly { readonly content: string }[] }
}

/** A batch at the vendor. */
export interface VendorBatch {
  readonly id: string
  readonly input_file_id: string
  readonly endpoint: string
  readonly metadata: Record<string, string>
  readonly created_at: number
  status: string
  output_file_id: string | null
  error_file_id: string | null
  errors: { data: { code: string; message: string }[] } | null
}

/** One call that arrived: `POST /v1/files`. */
export type VendorCall = `${string} ${string}`

/** A vendor with files and batches behind a real socket, whose batches end when the test says. */
export interface BatchVendor {
  readonly origin: string
  readonly calls: VendorCall[]
  readonly batches: Map<string, VendorBatch>
  readonly files: Map<string, string>
  /** Bytes of the largest upload, whole with its form. */
  readonly largestUpload: number
  /** Says how a call is answered otherwise than by itself: `true` if it was. */
  intercept: ((call: VendorCall, response: ServerResponse) => boolean) | undefined
  /** Whether batches end immediately after their creation. */
  isInstant: boolean
  /** The requests of a batch. */
  linesOf(batch: VendorBatch): VendorLine[]
  /** Makes a batch: `completed`, `expired` and `cancelled` with answers to the first `answered` requests; `failed`. */
  end(batch: VendorBatch, status: string, answered?: number): void
  close(): Promise<void>
}

/** Usage of each answer. */
export const LINE_USAGE = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 }

/** Starts one. */
export async function batchVendor(): Promise<BatchVendor> {
  let next = 1
  let largestUpload = 0
  const server = createServer((request, response) => {
    const call: VendorCall = `${request.method ?? ''} ${request.url ?? ''}`
    void bodyOf(request).then((body) => {
      vendor.calls.push(call)
      if (vendor.intercept?.(call, response) !== true) answer(call, body, response)
    })
  })
  const answer = (call: VendorCall, body: Buffer, response: ServerResponse): unknown => {
    const [method, url = ''] = call.split(' ')
    const [path = '', query = ''] = url.split('?')
    const [, collection, id, action] = path.slice(1).split('/')
    if (collection === 'chat') return json(response, completion(JSON.parse(body.toString()) as VendorLine['body']))
    if (collection === 'files') {
      if (method === 'POST') {
        largestUpload = Math.max(largestUpload, body.byteLength)
        const file = `file-${next++}`
        vendor.files.set(file, fileOf(body))
        return json(response, { id: file, object: 'file' })
      }
      const content = vendor.files.get(id ?? '')
      if (content === undefined) return json(response, { error: { message: 'No such File object', code: null } }, 404)
      if (method === 'DELETE') {
        vendor.files.delete(id ?? '')
        return json(response, { id, deleted: true })
      }
      response.writeHead(200).end(content)
      return
    }
    if (method === 'POST' && id === undefined) {
      const batch = created(JSON.parse(body.toString()) as VendorBatch)
      return json(response, batch)
    }
    if (id === undefined) return json(response, pageOf(new URLSearchParams(query)))
    const batch = vendor.batches.get(id)
    if (batch === undefined) return json(response, { error: { message: 'No such batch' } }, 404)
    if (action === 'cancel') {
      if (batch.status !== 'in_progress') return json(response, { error: { message: 'Cannot cancel' } }, 409)
      batch.status = 'cancelling'
    }
    json(response, batch)
  }
  const created = ({ input_file_id, endpoint, metadata }: VendorBatch): VendorBatch => {
    const batch: VendorBatch = {
      id: `batch_vendor${next++}`,
      input_file_id,
      endpoint,
      metadata,
      created_at: Math.floor(Date.now() / 1_000),
      status: 'in_progress',
      output_file_id: null,
      error_file_id: null,
      errors: null,
    }
    vendor.batches.set(batch.id, batch)
    if (vendor.isInstant) vendor.end(batch, 'completed')
    return batch
  }
  const pageOf = (parameters: URLSearchParams): object => {
    const all = [...vendor.batches.values()].reverse()
    const after = parameters.get('after')
    const start = after === null ? 0 : all.findIndex(({ id }) => id === after) + 1
    // Smaller pages than asked for, so that going on is tested.
    const data = all.slice(start, start + 2)
    return { object: 'list', data, has_more: start + 2 < all.length, last_id: data.at(-1)?.id ?? null }
  }
  const { origin, close } = await listen(server)
  const vendor: BatchVendor = {
    origin,
    calls: [],
    batches: new Map(),
    files: new Map(),
    get largestUpload() {
      return largestUpload
    },
    intercept: undefined,
    isInstant: false,
    linesOf: ({ input_file_id }) =>
      (vendor.files.get(input_file_id) ?? '').split('\n').map((line) => JSON.parse(line) as VendorLine),
    end(batch, status, answered = Number.POSITIVE_INFINITY) {
      batch.status = status
      if (status === 'failed') {
        batch.errors = { data: [{ code: 'model_not_found', message: 'The model is not available for batches' }] }
        return
      }
      const lines = vendor.linesOf(batch)
      const made = lines.filter((line, index) => index < answered && line.body.messages?.[0]?.content !== 'fail')
      const rest = lines.filter((line) => !made.includes(line))
      batch.output_file_id = made.length === 0 ? null : `file-${next++}`
      // In another order than they came: vendors promise none.
      const output = made.map(answeredLine).reverse()
      if (batch.output_file_id !== null) vendor.files.set(batch.output_file_id, `${output.join('\n')}\n`)
      batch.error_file_id = rest.length === 0 ? null : `file-${next++}`
      if (batch.error_file_id !== null)
        vendor.files.set(batch.error_file_id, `${rest.map((line) => failedLine(line, status)).join('\n')}\n`)
    },
    close,
  }
  return vendor
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

/** The file of a form. */
function fileOf(form: Buffer): string {
  const text = form.toString()
  const boundary = text.slice(0, text.indexOf('\r\n'))
  const part = text.split(boundary).find((each) => each.includes('name="file"')) ?? ''
  return part.slice(part.indexOf('\r\n\r\n') + 4).trim()
}

function json(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}

function completion({ model, messages }: VendorLine['body']): object {
  const message = { role: 'assistant', content: `You said: ${messages?.[0]?.content ?? ''}`, refusal: null }
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1_790_000_000,
    model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: 'stop' }],
    usage: LINE_USAGE,
  }
}

function answeredLine({ custom_id, body }: VendorLine): string {
  const response = { status_code: 200, request_id: 'vendor-request', body: completion(body) }
  return JSON.stringify({ id: 'batch_req_vendor', custom_id, response, error: null })
}

function failedLine({ custom_id, body }: VendorLine, status: string): string {
  if (body.messages?.[0]?.content === 'fail') {
    const error = {
      message: 'The prompt is not allowed',
      type: 'invalid_request_error',
      param: null,
      code: 'bad_prompt',
    }
    const response = { status_code: 400, request_id: 'vendor-request', body: { error } }
    return JSON.stringify({ id: 'batch_req_vendor', custom_id, response, error: null })
  }
  const code = status === 'expired' ? 'batch_expired' : 'batch_cancelled'
  return JSON.stringify({
    id: 'batch_req_vendor',
    custom_id,
    response: null,
    error: { code, message: 'It was not made' },
  })
}
