import { exactJsonText } from '../../core/exact-json.ts'
import { isJsonObject } from '../../core/json.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { MessagesRequest } from '../../endpoints/messages/messages-request.ts'
import type { EventLines } from '../../wire/event-splitter.ts'
import { asBuffer } from '../../wire/join-chunks.ts'
import { editMembers } from '../../wire/json-edits.ts'
import type { KeyHeaders } from '../shared/bearer-headers.ts'
import type { MessagesOperation, VendorCall, WireRequest } from '../vendor.ts'
import { messagesRequestFor } from './chat-to-wire.ts'
import { messagesStreamError } from './error-from.ts'
import { extraFeatures } from './extra-features.ts'
import { AutomaticMarks } from './marked-messages.ts'
import { acceptedMessages, callerHeader, messagesOperation } from './messages-operation.ts'
import { MessagesPassThrough } from './messages-pass-through.ts'

/** The Messages API inside a cloud's own API. The model is in the path, and the version in the body. */
export interface MessagesHost {
  /** Path of a call below the origin. */
  path(upstream: string, stream: boolean): string
  /** Path of the token count, whose body names the model. */
  readonly countPath: string
  readonly headers: KeyHeaders
  /** `anthropic_version` of every body. */
  readonly version: string
  /** Members of a request that the host accepts. Others are dropped and reported. */
  readonly fields: ReadonlySet<string>
  /** Nested members that the host rejects, and their names in reports to the caller: `scope`, `cache_control.scope`. */
  readonly refusedMembers: ReadonlyMap<string, string>
  /** Supported betas by name without date, with the host's full name if it differs. */
  readonly betas: ReadonlyMap<string, string | undefined>
  /** Betas that the host's token count accepts. */
  readonly countBetas: ReadonlySet<string>
  /** The host's own stream events, which clients of the dialect cannot read. */
  readonly hiddenEvents: ReadonlySet<string>
  /** Price fields of members that are not in `fields`. */
  readonly leavesOut: ReadonlySet<string>
}

/** Version of Anthropic's own API whose rules requests follow. */
const RULES_VERSION = '2023-06-01'

/** Writes a chat as a Messages request of the host. */
export function hostedChatToWire(call: VendorCall<ChatRequest>, host: MessagesHost): WireRequest {
  const dropped = new Set<string>()
  const { model: _inPath, ...body } = messagesRequestFor(call, RULES_VERSION, (field) => void dropped.add(field))
  return {
    path: host.path(call.model.upstream, call.stream),
    headers: host.headers(call.apiKey, call.stream ? 'text/event-stream' : 'application/json'),
    body: exactJsonText({ anthropic_version: host.version, ...body }),
    dropped: [...dropped],
  }
}

/** Creates the Messages operation of a host. Only the model, the version and rejected members of the caller's bytes change. */
export function hostedMessages(host: MessagesHost, apiKeys: readonly string[]): MessagesOperation {
  // Answers have the form of Anthropic's own API.
  const own = messagesOperation({ path: '', version: RULES_VERSION }, apiKeys)
  return {
    ...own,
    takesImageUrls: false,
    leavesOut: host.leavesOut,
    extraFeatures: ({ betas: _none, fallbacks: _nobody, ...request }, header) =>
      extraFeatures(request as MessagesRequest, (name) =>
        name === 'anthropic-beta' ? betasOf(header(name), host).sent.join() : header(name),
      ),
    stream: (call) => new HostedStream(call, apiKeys, host.hiddenEvents),
    toWire: (call) =>
      toWire(call, host, { path: host.path(call.model.upstream, call.stream), namesModel: false, betas: undefined }),
    tokenCount: {
      ...own.tokenCount,
      toWire: (call) => toWire(call, host, { path: host.countPath, namesModel: true, betas: host.countBetas }),
    },
  }
}

/** Differences of a kind of call. */
interface HostedCall {
  readonly path: string
  readonly namesModel: boolean
  /** Supported betas of the host, or `undefined` for all. */
  readonly betas: ReadonlySet<string> | undefined
}

function toWire(
  call: VendorCall<MessagesRequest>,
  host: MessagesHost,
  { path, namesModel, betas: allowed }: HostedCall,
): WireRequest {
  const { bytes, model, stream, apiKey } = call
  const { own, dropped } = acceptedMessages(call)
  const marks = AutomaticMarks.for(call)
  const request = marks?.inRequest(own ?? call.request) ?? own ?? call.request
  const unknown = Object.keys(request).filter((name) => !host.fields.has(name) && name !== 'model')
  const changes = new Map<string, string | undefined>([
    ['model', namesModel ? JSON.stringify(model.upstream) : undefined],
    ['anthropic_version', JSON.stringify(host.version)],
    ...unknown.map((name) => [name, undefined] as const),
  ])
  const source = own === undefined && bytes !== undefined ? asBuffer(bytes) : undefined
  const isPlain = source !== undefined && ![...host.refusedMembers.keys()].some((name) => source.includes(`"${name}"`))
  const marked = isPlain && marks !== undefined ? marks.inBytes(source) : source
  const edited = isPlain && marked !== undefined ? editMembers(marked, changes)?.apply(marked) : undefined
  const cleaned = edited === undefined ? withoutMembers(request, host.refusedMembers) : undefined
  const betas = betasOf(callerHeader(call, 'anthropic-beta'), host, allowed)
  return {
    path,
    headers: [
      ...host.headers(apiKey, stream ? 'text/event-stream' : 'application/json'),
      ...(betas.sent.length === 0 ? [] : ['anthropic-beta', betas.sent.join()]),
    ],
    body: edited ?? bodyWith(changes, cleaned!.value),
    dropped: [
      ...dropped,
      ...unknown.filter((name) => (request[name] ?? null) !== null),
      ...(cleaned?.removed ?? []),
      ...(betas.lost.length === 0 ? [] : ['anthropic-beta']),
    ],
  }
}

/** Returns the request as text with the changes of `editMembers`. */
function bodyWith(changes: ReadonlyMap<string, string | undefined>, request: object): string {
  const kept = Object.entries(request).filter(([name]) => !changes.has(name))
  const set = [...changes].flatMap(([name, value]) => (value === undefined ? [] : [[name, JSON.parse(value)] as const]))
  return exactJsonText(Object.fromEntries([...set, ...kept]))
}

/** Removes members with these names at any depth, except in tools' inputs and schemas, which belong to the caller. */
function withoutMembers(
  value: MessagesRequest,
  refused: ReadonlyMap<string, string>,
): { value: MessagesRequest; removed: readonly string[] } {
  const removed = new Set<string>()
  const walk = (one: unknown): unknown => {
    if (Array.isArray(one)) return one.map(walk)
    if (!isJsonObject(one)) return one
    return Object.fromEntries(
      Object.entries(one).flatMap(([name, member]) => {
        const shown = refused.get(name)
        if (shown !== undefined) {
          removed.add(shown)
          return []
        }
        return [[name, OPAQUE_MEMBERS.has(name) ? member : walk(member)]]
      }),
    )
  }
  return { value: walk(value) as MessagesRequest, removed: [...removed] }
}

const OPAQUE_MEMBERS: ReadonlySet<string> = new Set(['input', 'input_schema', 'schema', 'metadata', 'input_examples'])

const DATE = /-\d{4}-?\d{2}-?\d{2}$/

/** Splits the betas of a header into supported and unsupported ones. */
function betasOf(
  header: string | undefined,
  host: MessagesHost,
  allowed?: ReadonlySet<string>,
): { sent: readonly string[]; lost: readonly string[] } {
  const sent: string[] = []
  const lost: string[] = []
  for (const part of (header ?? '').split(',')) {
    const beta = part.trim()
    const name = beta.replace(DATE, '')
    if (beta === '') continue
    if (host.betas.has(name) && allowed?.has(name) !== false) sent.push(host.betas.get(name) ?? beta)
    else lost.push(beta)
  }
  return { sent, lost }
}

/** Passes a stream on without the host's own events. */
class HostedStream extends MessagesPassThrough {
  readonly #hidden: ReadonlySet<string>

  constructor(
    call: Pick<VendorCall<MessagesRequest>, 'publicModel' | 'conversation'>,
    apiKeys: readonly string[],
    hidden: ReadonlySet<string>,
  ) {
    super(call, (event) => messagesStreamError(event, apiKeys))
    this.#hidden = hidden
  }

  protected override readEvent(event: EventLines, isRest: boolean): void {
    if (event.name !== undefined && this.#hidden.has(event.name)) this.drop()
    else super.readEvent(event, isRest)
  }
}
