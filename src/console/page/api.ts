import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import type { OperatorScope } from '../../admin/admin-route.ts'
import type { CatalogObject, VendorObject as Vendor } from '../../admin/objects/catalog.ts'
import type { UsageRowObject as UsageRow } from '../../admin/objects/usage.ts'

/** Error answer of the admin API, or a failed connection. */
export class ApiError extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** Kept only in memory: it must be entered again after a reload, and no script of another page can read it. */
let operatorKey: string | undefined

export function useOperatorKey(key: string | undefined): void {
  operatorKey = key
}

/** Reads from the API next to the page. */
export async function ask<Answer>(path: string, signal?: AbortSignal): Promise<Answer> {
  return (await (await send('GET', path, { signal })).json()) as Answer
}

/** Makes a change, once per key. */
async function change<Answer>(method: 'POST' | 'PATCH', path: string, body: object, key: string): Promise<Answer> {
  return (await (await send(method, path, { body, headers: { 'idempotency-key': key } })).json()) as Answer
}

interface Sending {
  readonly body?: object
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal | undefined
}

/** @throws ApiError for every unsuccessful answer. */
export async function send(method: string, path: string, { body, headers = {}, signal }: Sending): Promise<Response> {
  const response = await fetch(new URL(`v1/${path}`, document.baseURI), {
    method,
    headers: {
      'x-signalbox-console': '1',
      ...(operatorKey === undefined ? {} : { authorization: `Bearer ${operatorKey}` }),
      ...(method === 'GET' ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    body: body === undefined ? null : JSON.stringify(body),
    signal: signal ?? null,
  }).catch((error: unknown) => {
    if (signal?.aborted === true) throw error
    throw new ApiError(0, 'The gateway cannot be reached.')
  })
  if (response.ok) return response
  throw new ApiError(response.status, await messageOf(response))
}

async function messageOf(response: Response): Promise<string> {
  const answer: unknown = await response.json().catch(() => undefined)
  const { error } = (answer ?? {}) as { error?: { message?: unknown } }
  return typeof error?.message === 'string' ? error.message : `The gateway answered ${response.status}.`
}

/** Creates a key that makes a change once, however often its button is clicked. Pages without TLS do not have `randomUUID`. */
function newIdempotencyKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Downloads a file with the operator's key, which a link could not send. */
export async function download(path: string, fileName: string): Promise<void> {
  const address = URL.createObjectURL(await (await send('GET', path, {})).blob())
  const link = document.createElement('a')
  link.href = address
  link.download = fileName
  link.click()
  URL.revokeObjectURL(address)
}

/** Returns a query string of the values that are set. */
export function queryOf(values: Readonly<Record<string, string | number | undefined>>): string {
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== '')
  const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()
  return query === '' ? '' : `?${query}`
}

/** Returns members whose values differ from the displayed ones: concurrent changes by other operators are kept. */
export function changesOf(given: Readonly<Record<string, unknown>>, shown: Readonly<Record<string, unknown>>): object {
  const isChanged = (name: string): boolean => JSON.stringify(given[name]) !== JSON.stringify(shown[name])
  return Object.fromEntries(Object.entries(given).filter(([name]) => isChanged(name)))
}

/** Answers of the admin API, inferred from its schemas. */
export type {
  AccountObject as Account,
  AuditEntryObject as AuditEntry,
  EntryObject as Entry,
  HoldObject as Hold,
  KeyObject as Key,
  NewKeyObject as MadeKey,
  SpendingObject as Spending,
  StatementObject as Statement,
} from '../../admin/objects/accounts.ts'
export type {
  ModelObject as Model,
  PriceObject as Price,
  RetiringModelObject as RetiringModel,
} from '../../admin/objects/catalog.ts'
export type { DeliveryObject as Delivery, TaskObject as Task } from '../../admin/objects/task.ts'
export type { RequestDetailObject as RequestDetail, RequestObject as RequestRow } from '../../admin/objects/usage.ts'
export type { MoneyChangeObject as MoneyChange } from '../../admin/routes/account-routes.ts'
export type { UsageRow, Vendor }

/** Page of objects. */
export interface List<Item> {
  readonly data: readonly Item[]
  readonly has_more: boolean
  readonly next: string | null
}

export interface VendorList extends List<Vendor> {
  readonly catalog: CatalogObject
}

export interface Usage {
  readonly as_of_ms: number
  readonly data: readonly UsageRow[]
}

/** The signed-in operator and their permissions. */
export interface Session {
  readonly operator: string
  readonly can: readonly OperatorScope[]
  readonly read_only: boolean
  readonly billing: 'on' | 'off'
}

/**
 * Yields the text of a chat's answer, whole or streamed.
 * @throws Error with the message of an error event.
 */
export async function* readTexts(response: Response): AsyncIterable<string> {
  if (response.headers.get('content-type')?.startsWith('text/event-stream') !== true) {
    yield textIn(await response.json(), 'message')
    return
  }
  for await (const line of linesOf(response)) {
    if (!line.startsWith('data:')) continue
    const data = line.slice('data:'.length).trim()
    if (data === '[DONE]') return
    yield textIn(JSON.parse(data), 'delta')
  }
  throw new Error('The answer broke off.')
}

interface Chunk {
  readonly error?: { readonly message?: string }
  readonly choices?: readonly { readonly message?: Content; readonly delta?: Content }[]
}
interface Content {
  readonly content?: string | null
}

function textIn(answer: unknown, member: 'message' | 'delta'): string {
  const { error, choices } = answer as Chunk
  if (error !== undefined) throw new Error(error.message ?? 'The call failed.')
  return choices?.[0]?.[member]?.content ?? ''
}

async function* linesOf(response: Response): AsyncIterable<string> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  if (reader === undefined) return
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    const lines = `${rest}${value}`.split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
  if (rest !== '') yield rest
}

/** Data that has been read so far. */
export interface Read<Answer> {
  readonly data: Answer | undefined
  readonly error: string | undefined
  readonly isLoading: boolean
  reload(): void
}

const POLL_MS = 5_000
/** An equal change within this time counts as one click: the second click of a double click, or a key that is held. */
const DOUBLE_CLICK_MS = 1_000
const MAX_READ_MS = 60_000
const NEVER = Number.NEGATIVE_INFINITY

/** Called if the operator is not, or no longer, known. */
let onUnknown: () => void = () => undefined

export function setUnknownListener(listener: () => void): void {
  onUnknown = listener
}

/** Reads from the API; again when the path changes, and every 5 seconds while the page is visible if `isLive`. */
export function useData<Answer>(path: string | undefined, isLive = false): Read<Answer> {
  const [state, setState] = useState<{ path?: string; data?: Answer; error?: string }>({})
  const [turn, setTurn] = useState(0)
  const reload = useCallback(() => setTurn((latest) => latest + 1), [])
  /** Start of the current read, or `undefined` if there is none. */
  const readingSinceMs = useRef<number | undefined>(undefined)
  // `turn` triggers the same read again.
  useEffect(() => {
    if (path === undefined) return undefined
    const abort = new AbortController()
    readingSinceMs.current = Date.now()
    ask<Answer>(path, abort.signal).then(
      (data) => {
        if (abort.signal.aborted) return
        readingSinceMs.current = undefined
        setState({ path, data })
      },
      (error: unknown) => {
        if (abort.signal.aborted) return
        readingSinceMs.current = undefined
        if (error instanceof ApiError && error.status === 401) onUnknown()
        setState((before) => ({
          path,
          ...(before.path === path && before.data !== undefined ? { data: before.data } : {}),
          error: textOf(error),
        }))
      },
    )
    return () => abort.abort()
  }, [path, turn])
  useEffect(() => {
    if (!isLive) return undefined
    const timer = setInterval(() => {
      // An answer that takes longer than this interval would otherwise be aborted each time, and never be shown.
      const isUnderWay = Date.now() - (readingSinceMs.current ?? 0) < MAX_READ_MS
      if (document.visibilityState === 'visible' && !isUnderWay) reload()
    }, POLL_MS)
    return () => clearInterval(timer)
  }, [isLive, reload])
  const isCurrent = state.path === path
  return {
    data: isCurrent ? state.data : undefined,
    error: isCurrent ? state.error : undefined,
    isLoading: path !== undefined && !isCurrent,
    reload,
  }
}

/** Change in progress. */
export interface Change<Answer> {
  readonly isRunning: boolean
  readonly error: string | undefined
  run(method: 'POST' | 'PATCH', path: string, body?: object): void
  /** Result of the last change. */
  readonly made: Answer | undefined
}

/** Makes changes. A change that is sent again after a connection failure, or twice by a double click, is made only once. */
export function useChange<Answer>(onMade: (answer: Answer) => void): Change<Answer> {
  const [state, setState] = useState<{ isRunning: boolean; error?: string; made?: Answer }>({ isRunning: false })
  const intent = useRef({ text: '', key: '', madeAtMs: NEVER })
  return {
    isRunning: state.isRunning,
    error: state.error,
    made: state.made,
    run(method, path, body = {}) {
      const text = JSON.stringify([method, path, body])
      const { madeAtMs } = intent.current
      if (intent.current.text !== text || madeAtMs !== NEVER) {
        if (intent.current.text === text && performance.now() - madeAtMs < DOUBLE_CLICK_MS) return
        intent.current = { text, key: newIdempotencyKey(), madeAtMs: NEVER }
      }
      setState({ isRunning: true })
      change<Answer>(method, path, body, intent.current.key).then(
        (made) => {
          if (intent.current.text === text) intent.current = { ...intent.current, madeAtMs: performance.now() }
          setState({ isRunning: false, made })
          onMade(made)
        },
        (error: unknown) => {
          if (error instanceof ApiError && error.status === 401) onUnknown()
          setState({ isRunning: false, error: textOf(error) })
        },
      )
    },
  }
}

export function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
