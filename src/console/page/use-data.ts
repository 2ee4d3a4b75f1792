import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, ask, change, newIdempotencyKey } from './api.ts'

/** Data that has been read so far. */
export interface Read<Answer> {
  readonly data: Answer | undefined
  readonly error: string | undefined
  readonly isLoading: boolean
  reload(): void
}

const POLL_MS = 5_000
/** An equal change within this time counts as one click: the second click of a double click, or a key that is held. */
const SAME_PRESS_MS = 1_000
const LONGEST_READ_MS = 60_000
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
      const isUnderWay = Date.now() - (readingSinceMs.current ?? 0) < LONGEST_READ_MS
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
        if (intent.current.text === text && performance.now() - madeAtMs < SAME_PRESS_MS) return
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
