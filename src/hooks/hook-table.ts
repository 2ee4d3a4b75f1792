import type { Clock } from '../core/clock.ts'
import { unknownMember } from '../core/known-members.ts'
import type { Logger } from '../core/logger.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { TextKind } from '../endpoints/texts.ts'
import type { AnyHook, Hook, TextHook } from './hook.ts'

/** Default time limit of an asynchronous point of a hook. */
const DEFAULT_TIMEOUT_MS = 2_000

/** Hook with its defaults. */
export interface CompiledHook {
  readonly hook: Hook
  readonly name: string
  readonly timeoutMs: number
  readonly isOpen: boolean
  readonly chargesDenied: boolean
}

/** Hooks of one endpoint by point, or undefined if a point has none. */
interface EndpointHooks {
  readonly request: readonly CompiledHook[] | undefined
  readonly wire: readonly CompiledHook[] | undefined
  /** Answer hooks in reverse order, including those with only `text`. */
  readonly answer: readonly CompiledHook[] | undefined
  readonly failed: readonly CompiledHook[] | undefined
  /** Names and versions of the hooks that change the request to a vendor, in order; '' without any. Part of a cache's key. */
  readonly fingerprint: string
}

const MEMBERS: readonly string[] = [
  ...['name', 'endpoints', 'version', 'timeoutMs', 'onFailure', 'chargeDenied'],
  ...['request', 'wire', 'answer', 'text', 'failed', 'appliesTo', 'start', 'close'],
]

export const TEXT_KINDS: readonly string[] = [
  'text',
  'reasoning',
  'tool_arguments',
  'transcript',
  'parameter',
] satisfies TextKind[]

const TEXT_MEMBERS: readonly string[] = ['holdBack', 'holdAll', 'check'] satisfies (keyof TextHook)[]

const POINTS = ['request', 'wire', 'answer', 'failed'] as const

/** Hooks of a gateway by endpoint, created once. */
export class HookTable {
  readonly #byEndpoint: ReadonlyMap<Endpoint, EndpointHooks>
  readonly #compiled: readonly CompiledHook[]

  /** @throws TypeError with the name of a hook that an endpoint cannot support. */
  constructor(hooks: readonly AnyHook[], endpoints: readonly Endpoint[]) {
    const compiled = hooks.map((hook) => compile(hook, endpoints))
    const names = new Set(hooks.map(({ name }) => name))
    if (names.size < hooks.length) throw new TypeError('createGateway: two hooks have the same name')
    const shapes = endpoints.flatMap((endpoint) => [endpoint, ...(endpoint.shapes?.values() ?? [])])
    this.#compiled = compiled
    this.#byEndpoint = new Map(shapes.map((endpoint) => [endpoint, hooksOf(compiled, endpoint)]))
  }

  /** Passes logger and clock to each hook. */
  start(logger: Logger, clock: Clock): void {
    for (const { hook } of this.#compiled) hook.start?.({ logger, clock })
  }

  /** Closes each hook. Resolves when all have closed or failed, and at the latest after `drainMs` or a second. Never rejects. */
  async close(clock: Clock, drainMs: number, logger: Logger): Promise<void> {
    const closing = this.#compiled.map(async ({ hook, name }) => {
      try {
        await hook.close?.()
      } catch (error) {
        logger.error('a hook could not be closed', { hook: name, error })
      }
    })
    let timer: { cancel(): void } | undefined
    const late = new Promise<void>((resolve) => {
      timer = clock.schedule(Math.max(MIN_CLOSE_MS, drainMs), resolve)
    })
    await Promise.race([Promise.all(closing), late])
    timer?.cancel()
  }

  of(endpoint: Endpoint): EndpointHooks | undefined {
    return this.#byEndpoint.get(endpoint)
  }
}

/** Minimum time for hooks to write buffered data, however little of the drain time is left. */
const MIN_CLOSE_MS = 1_000

function hooksOf(compiled: readonly CompiledHook[], endpoint: Endpoint): EndpointHooks {
  const covering = compiled.filter(({ hook }) => hook.endpoints?.includes(endpoint.id as never) !== false)
  const answering =
    endpoint.texts?.answer === undefined
      ? []
      : covering.filter(({ hook }) => hook.answer !== undefined || hook.text !== undefined).reverse()
  return {
    request: some(covering.filter(({ hook }) => hook.request !== undefined)),
    wire: some(covering.filter(({ hook }) => hook.wire !== undefined)),
    answer: some(answering),
    failed: some(covering.filter(({ hook }) => hook.failed !== undefined)),
    fingerprint: fingerprintOf(covering.filter(({ hook }) => hook.request !== undefined || hook.wire !== undefined)),
  }
}

function fingerprintOf(hooks: readonly CompiledHook[]): string {
  return hooks.length === 0 ? '' : JSON.stringify(hooks.map(({ name, hook }) => [name, hook.version ?? null]))
}

function some<Item>(list: readonly Item[]): readonly Item[] | undefined {
  return list.length === 0 ? undefined : list
}

function compile(hook: AnyHook, endpoints: readonly Endpoint[]): CompiledHook {
  if (typeof hook !== 'object' || hook === null || typeof hook.name !== 'string' || hook.name === '')
    throw new TypeError('createGateway: every hook needs a name')
  const { name, timeoutMs = DEFAULT_TIMEOUT_MS, onFailure = 'deny', chargeDenied = true } = hook
  const at = `createGateway: the hook ${JSON.stringify(name)}`
  for (const member of Object.keys(hook)) if (!MEMBERS.includes(member)) throw unknownMember(member, MEMBERS, at)
  if (!(Number.isFinite(timeoutMs) && timeoutMs > 0)) throw new TypeError(`${at}: timeoutMs must be a positive number`)
  if (hook.version !== undefined && typeof hook.version !== 'string')
    throw new TypeError(`${at}: version must be a string`)
  if (onFailure !== 'deny' && onFailure !== 'allow') throw new TypeError(`${at}: onFailure must be deny or allow`)
  if (typeof chargeDenied !== 'boolean') throw new TypeError(`${at}: chargeDenied must be true or false`)
  for (const point of [...POINTS, 'appliesTo', 'start', 'close'] as const)
    if (hook[point] !== undefined && typeof hook[point] !== 'function')
      throw new TypeError(`${at}: ${point} must be a function`)
  if (hook.text !== undefined) checkText(at, hook.text)
  if (POINTS.every((point) => hook[point] === undefined) && hook.text === undefined)
    throw new TypeError(`${at} has none of ${POINTS.join(', ')}, text`)
  checkCoverage(at, hook, endpoints)
  return { hook, name, timeoutMs, isOpen: onFailure === 'allow', chargesDenied: chargeDenied }
}

function checkText(at: string, text: TextHook): void {
  const { holdBack, holdAll = [], check } = text
  for (const member of Object.keys(text))
    if (!TEXT_MEMBERS.includes(member)) throw unknownMember(member, TEXT_MEMBERS, at, 'text')
  if (!Array.isArray(holdAll) || !holdAll.every((kind) => TEXT_KINDS.includes(kind)))
    throw new TypeError(`${at}: text.holdAll must be a list of ${TEXT_KINDS.join(', ')}`)
  if (typeof check !== 'function') throw new TypeError(`${at}: text.check must be a function`)
  if (holdBack === 'all') return
  if (!(Number.isSafeInteger(holdBack?.chars) && holdBack.chars >= 0))
    throw new TypeError(`${at}: text.holdBack must be "all" or { chars } with a whole number from 0 on`)
}

/** A hook must not assume that it has checked texts that it could not read. */
function checkCoverage(at: string, hook: AnyHook, endpoints: readonly Endpoint[]): void {
  const { endpoints: ids } = hook as Hook
  if (ids !== undefined && (!Array.isArray(ids) || ids.length === 0))
    throw new TypeError(`${at}: endpoints must be a list of ids`)
  const known = [...new Set(endpoints.map(({ id }) => id))]
  for (const id of ids ?? [])
    if (!known.includes(id))
      throw new TypeError(`${at}: there is no endpoint ${JSON.stringify(id)}; there are ${known.join(', ')}`)
  const readsAnswers = hook.answer !== undefined || hook.text !== undefined
  if (hook.request === undefined && !readsAnswers) return
  for (const endpoint of endpoints) {
    if (ids?.includes(endpoint.id as never) === false) continue
    const shapes = endpoint.shapes === undefined ? [endpoint] : [...endpoint.shapes.values()]
    if (shapes.some(({ texts }) => texts === undefined))
      throw new TypeError(
        `${at} cannot read the endpoint ${JSON.stringify(endpoint.id)}, which does not say where its texts are: name other endpoints, or give that one \`texts\``,
      )
    const isOnlyAnswers = ids !== undefined && hook.request === undefined && readsAnswers
    const isSilent = endpoints.every(({ id, texts }) => id !== endpoint.id || texts?.answer === undefined)
    if (isOnlyAnswers && isSilent)
      throw new TypeError(
        `${at}: answers of the endpoint ${JSON.stringify(endpoint.id)} have no text that it could read`,
      )
  }
}
