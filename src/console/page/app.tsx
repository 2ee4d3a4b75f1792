import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, ask, type Session, setUnknownListener, textOf, useOperatorKey } from './api.ts'
import { hrefOf, type Place, usePlace } from './format.ts'
import { Fault, Field, Form } from './parts.tsx'
import { Account } from './views/account.tsx'
import { Accounts, Audit } from './views/accounts.tsx'
import { Models, Vendors } from './views/models.tsx'
import { Overview } from './views/overview.tsx'
import { Playground } from './views/playground.tsx'
import { Request, Requests } from './views/requests.tsx'
import { Tasks } from './views/tasks.tsx'

const VIEWS = [
  ['overview', 'Overview'],
  ['requests', 'Requests'],
  ['accounts', 'Accounts'],
  ['models', 'Models and prices'],
  ['vendors', 'Vendors'],
  ['tasks', 'Tasks and webhooks'],
  ['audit', 'Audit'],
  ['playground', 'Playground'],
] as const

/** Reads the signed-in operator, then shows the view of the URL. */
export function App() {
  const [session, setSession] = useState<Session>()
  const [fault, setFault] = useState<string>()
  const [isAsking, setAsking] = useState(true)
  const open = useCallback((isFirst: boolean): void => {
    setAsking(true)
    ask<Session>('session')
      .then(
        (found) => {
          setSession(found)
          setFault(undefined)
        },
        (error: unknown) => {
          const isUnknown = error instanceof ApiError && error.status === 401
          setFault(isFirst && isUnknown ? undefined : isUnknown ? 'This key is not an operator’s.' : textOf(error))
        },
      )
      .finally(() => setAsking(false))
  }, [])
  const leave = useCallback((): void => {
    useOperatorKey(undefined)
    setSession(undefined)
  }, [])
  useEffect(() => {
    setUnknownListener(() => {
      leave()
      setFault('You are no longer known as an operator. Sign in again, or give an operator key.')
    })
    open(true)
  }, [leave, open])
  if (session !== undefined) return <Console session={session} onLeave={leave} />
  if (isAsking && fault === undefined) return <p role="status">Loading…</p>
  return (
    <main class="entrance">
      <h1>Signalbox console</h1>
      <p>Give an operator key. It stays in the memory of this page.</p>
      <Form
        name="Operator"
        button="Open"
        change={{ isRunning: isAsking, error: fault }}
        onSubmit={({ key }) => {
          useOperatorKey(key)
          open(false)
        }}
      >
        <Field name="key" label="Operator key" type="password" isRequired />
      </Form>
    </main>
  )
}

function Console({ session, onLeave }: { session: Session; onLeave(): void }) {
  const place = usePlace()
  const [name = 'overview', id] = place.steps
  const title = VIEWS.find(([view]) => view === name)?.[1] ?? 'Not found'
  const heading = useRef<HTMLHeadingElement>(null)
  const isFirst = useRef(true)
  // A new view is announced, and screen readers start at its heading.
  useEffect(() => {
    document.title = `${id ?? title} · Signalbox console`
    if (!isFirst.current) heading.current?.focus()
    isFirst.current = false
  }, [title, id])
  return (
    <>
      <button type="button" class="skip" onClick={() => heading.current?.focus()}>
        Skip to content
      </button>
      <header>
        <strong>Signalbox</strong>
        <nav aria-label="Views">
          {VIEWS.map(([view, text]) => (
            <a key={view} href={hrefOf([view])} aria-current={view === name ? 'page' : undefined}>
              {text}
            </a>
          ))}
        </nav>
        <span class="who">
          {session.operator}
          {session.read_only ? ' (read only)' : ''}
        </span>
        <ThemeSwitch />
        <button type="button" class="small" onClick={onLeave}>
          Leave
        </button>
      </header>
      <main id="main">
        <h1 ref={heading} tabIndex={-1}>
          {id ?? title}
        </h1>
        <View key={`${name} ${id ?? ''}`} name={name} id={id} place={place} session={session} />
      </main>
    </>
  )
}

interface ViewProps {
  readonly name: string
  readonly id: string | undefined
  readonly place: Place
  readonly session: Session
}

function View({ name, id, place, session }: ViewProps) {
  switch (name) {
    case 'overview':
      return <Overview place={place} />
    case 'requests':
      return id === undefined ? <Requests place={place} /> : <Request id={id} place={place} />
    case 'accounts':
      return id === undefined ? (
        <Accounts place={place} session={session} />
      ) : (
        <Account key={id} id={id} session={session} />
      )
    case 'models':
      return <Models place={place} />
    case 'vendors':
      return <Vendors session={session} />
    case 'tasks':
      return <Tasks account={id} place={place} session={session} />
    case 'audit':
      return <Audit place={place} />
    case 'playground':
      return <Playground session={session} />
    default:
      return (
        <>
          <Fault text={`There is no view “${name}”.`} />
          <p>
            Go to the <a href={hrefOf(['overview'])}>overview</a>.
          </p>
        </>
      )
  }
}

const THEMES = ['system', 'light', 'dark'] as const
type Theme = (typeof THEMES)[number]
const STORED = 'signalbox-console-theme'

function storedTheme(): Theme {
  try {
    const stored = localStorage.getItem(STORED)
    return THEMES.find((theme) => theme === stored) ?? 'system'
  } catch {
    // Storage may be disabled; then the system's theme applies.
    return 'system'
  }
}

/** Runs before the first render, so that the colours do not change afterwards. */
export function applyTheme(theme = storedTheme()): void {
  document.documentElement.dataset['theme'] = theme
}

function store(theme: Theme): void {
  try {
    localStorage.setItem(STORED, theme)
  } catch {
    // The choice applies until the page is closed.
  }
}

/** Switch between light, dark and the system's theme. */
function ThemeSwitch() {
  const [theme, setTheme] = useState(storedTheme)
  return (
    <label class="theme">
      <span class="hidden">Theme</span>
      <select
        value={theme}
        onChange={(event) => {
          const chosen = THEMES.find((name) => name === event.currentTarget.value) ?? 'system'
          store(chosen)
          setTheme(chosen)
          applyTheme(chosen)
        }}
      >
        {THEMES.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  )
}
