import { Buffer } from 'node:buffer'
import { isJsonObject, parseVendorJson } from '../core/json.ts'
import { isPending } from '../core/maybe-promise.ts'
import type { Usage } from '../core/usage.ts'
import type { AnswerBody, ChunkedAnswer, Operation, WireRequest } from '../endpoints/operation.ts'
import type { StreamTransform } from '../endpoints/stream-transform.ts'
import type { HookWire, WireResult } from '../hooks/hook.ts'
import type { CompiledHook } from '../hooks/hook-table.ts'
import { asBuffer } from '../wire/join-chunks.ts'
import { editMembers } from '../wire/json-edits.ts'
import type { Candidate, Reserved } from './call-record.ts'
import { endUserOf } from './end-user.ts'
import { carriesCredential, checkedResult, hookFailed } from './hook-facts.ts'
import { HEADER_NAME, HEADER_VALUE } from './hook-headers.ts'
import type { PipelineContext } from './pipeline-context.ts'

/** Headers that belong to the connection, or frame the body. */
const FRAMING_HEADER =
  /^(?:host|connection|content-length|content-type|content-encoding|transfer-encoding|expect|upgrade|te)$/i

/** Members that determine the call and how the answer is read. */
const FIXED_MEMBERS: ReadonlySet<string> = new Set(['model', 'stream'])

/**
 * Lets hooks add to the requests of an operation, before they are signed and sent.
 * @throws GatewayError `hook_failed`.
 */
export function withWireHooks(
  context: PipelineContext,
  call: Reserved,
  candidate: Candidate,
  operation: Operation,
  hooks: readonly CompiledHook[],
): Operation {
  const requests = operation.requests.map((request) => {
    let changed = request
    for (const hook of hooks) changed = wired(context, call, candidate, changed, hook)
    return changed
  })
  return requests.every((request, index) => request === operation.requests[index])
    ? operation
    : new WiredOperation(operation, requests)
}

/** Adds the end user to the requests of an operation, if the vendor's options say so. */
export function withEndUser(call: Reserved, { vendor }: Candidate, operation: Operation): Operation {
  const { endUserMembers } = vendor
  if (endUserMembers === undefined) return operation
  const { principal, body } = call
  const who = { accountId: principal.accountId, endUser: endUserOf(principal, body), request: body }
  const requests = operation.requests.map((request) => {
    const members = endUserMembers(request.path, who)
    return members === undefined ? request : { ...request, body: withMembers(request.body, members) }
  })
  return new WiredOperation(operation, requests)
}

function wired(
  context: PipelineContext,
  call: Reserved,
  candidate: Candidate,
  request: WireRequest,
  hook: CompiledHook,
): WireRequest {
  let fault: 'threw' | 'unusable-result' = 'threw'
  try {
    const returned = hook.hook.wire?.(visible(call, candidate, request))
    fault = 'unusable-result'
    if (isPending(returned)) throw new TypeError('the point wire is synchronous')
    const result = checkedResult<WireResult>(returned, ['headers', 'members'])
    if (result === undefined) return request
    const headers = withHeaders(request.headers, result.headers, candidate.apiKey)
    return { ...request, headers, body: withMembers(request.body, result.members) }
  } catch (error) {
    const failure = hookFailed(context, call, candidate.model.id, { hook, point: 'wire', fault, error })
    if (failure !== undefined) throw failure
    return request
  }
}

/** Returns the part of a request to a vendor that a hook may see, without credentials. */
function visible(call: Reserved, { model, vendor, apiKey }: Candidate, request: WireRequest): HookWire {
  const headers: Record<string, string> = {}
  for (let index = 0; index + 1 < request.headers.length; index += 2) {
    const name = request.headers[index]!.toLowerCase()
    const value = request.headers[index + 1]!
    if (!isSecret(name, value, apiKey)) headers[name] = value
  }
  const { requestId, endpoint, principal } = call
  const path = apiKey === '' ? request.path : request.path.replaceAll(apiKey, '[key]')
  return { requestId, endpoint: endpoint.id, model: model.id, vendor: vendor.id, principal, headers, path }
}

function isSecret(name: string, value: string, apiKey: string): boolean {
  return carriesCredential(name) || (apiKey !== '' && value.includes(apiKey))
}

function withHeaders(headers: readonly string[], added: unknown, apiKey: string): readonly string[] {
  if (added === undefined) return headers
  if (!isJsonObject(added)) throw new TypeError('headers must be an object')
  const changed = [...headers]
  for (const [name, value] of Object.entries(added)) {
    if (!HEADER_NAME.test(name) || typeof value !== 'string' || !HEADER_VALUE.test(value))
      throw new TypeError(`the header ${JSON.stringify(name)} cannot be sent`)
    const at = changed.findIndex((known, index) => index % 2 === 0 && known.toLowerCase() === name.toLowerCase())
    const isOfVendor = at !== -1 && isSecret(name, changed[at + 1]!, apiKey)
    if (FRAMING_HEADER.test(name) || carriesCredential(name) || isOfVendor)
      throw new TypeError(`the header ${JSON.stringify(name)} cannot be set by a hook`)
    if (at === -1) changed.push(name, value)
    else changed[at + 1] = value
  }
  return changed
}

function withMembers(body: WireRequest['body'], members: unknown): WireRequest['body'] {
  if (members === undefined) return body
  if (!isJsonObject(members)) throw new TypeError('members must be an object')
  const names = Object.keys(members)
  const fixed = names.find((name) => FIXED_MEMBERS.has(name))
  if (fixed !== undefined) throw new TypeError(`the member ${JSON.stringify(fixed)} cannot be set by a hook`)
  if (names.length === 0) return body
  if (Array.isArray(body)) throw new TypeError('members can be added to JSON bodies only, and this one is a form')
  const text = asBuffer(typeof body === 'string' ? Buffer.from(body) : (body as Uint8Array))
  const edits = editMembers(text, new Map(names.map((name) => [name, JSON.stringify(members[name])])))
  if (edits !== undefined) return edits.apply(text)
  const value = parseVendorJson(text.toString('utf8'))
  if (!isJsonObject(value)) throw new TypeError('members can be added to JSON objects only')
  return JSON.stringify({ ...value, ...members })
}

/** Operation with changed requests. A class, like every object that lives as long as a vendor takes to answer. */
class WiredOperation implements Operation {
  readonly requests: readonly WireRequest[]
  readonly reasonsUnseen: boolean
  readonly #operation: Operation

  constructor(operation: Operation, requests: readonly WireRequest[]) {
    this.#operation = operation
    this.requests = requests
    this.reasonsUnseen = operation.reasonsUnseen === true
  }

  whole(answers: readonly ChunkedAnswer[]): AnswerBody | undefined {
    return this.#operation.whole(answers)
  }

  stream(): StreamTransform {
    return this.#operation.stream()
  }

  partialUsage(answers: readonly (ChunkedAnswer | undefined)[]): Usage | undefined {
    return this.#operation.partialUsage?.(answers)
  }

  cutBytes(chunks: readonly Uint8Array[]): number | undefined {
    return this.#operation.cutBytes?.(chunks)
  }
}
