import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { exactMoney, money } from './format.ts'
import type { Read } from './use-data.ts'

type Children = { readonly children?: ComponentChildren }

/** A part of a view under its heading. */
export function Section({ title, actions, children }: Children & { title: string; actions?: ComponentChildren }) {
  return (
    <section aria-label={title}>
      <div class="heading">
        <h2>{title}</h2>
        {actions}
      </div>
      {children}
    </section>
  )
}

/** A figure with its name. */
export function Card({ name, value, note }: { name: string; value: ComponentChildren; note?: string | undefined }) {
  return (
    <div class="card">
      <dt>{name}</dt>
      <dd>
        {value}
        {note === undefined ? null : <small>{note}</small>}
      </dd>
    </div>
  )
}

/** Rounded amount, with the exact one on hover. */
export function Amount({ of }: { of: string | bigint }) {
  return <span title={exactMoney(of)}>{money(of)}</span>
}

export function AmountCell({ of }: { of: string | bigint }) {
  return (
    <td class="number">
      <Amount of={of} />
    </td>
  )
}

export function Cards({ children }: Children) {
  return <dl class="cards">{children}</dl>
}

/** What to do where there is nothing yet. */
export function Empty({ children }: Children) {
  return <p class="empty">{children}</p>
}

export function Fault({ text }: { text: string | undefined }) {
  return text === undefined ? null : (
    <p class="fault" role="alert">
      {text}
    </p>
  )
}

/** What is read, or how far it has come. */
export function Loaded<Answer>({ of, children }: { of: Read<Answer>; children: (data: Answer) => ComponentChildren }) {
  return (
    <>
      <Fault text={of.error} />
      {of.data === undefined ? of.isLoading ? <p role="status">Loading…</p> : null : children(of.data)}
    </>
  )
}

/** A state by word and colour. */
export function Badge({ kind, children }: Children & { kind: 'good' | 'bad' | 'warn' | 'plain' }) {
  return <span class={`badge ${kind}`}>{children}</span>
}

/** The title of a column; in a list, the title of a column of numbers. */
type Column = string | readonly [string]

interface PagerProps {
  /** Where this page begins; undefined: it is the first. */
  readonly after: string | undefined
  /** Where the next one does; null: there is none. */
  readonly next: string | null
  /** Texts of the ways to the first page and to the next one. */
  readonly labels: readonly [first: string, next: string]
  onPage(after: string | undefined): void
}

/** The ways to other pages of a list; nothing where it has one only. */
export function Pager({ after, next, labels: [first, further], onPage }: PagerProps) {
  if (after === undefined && next === null) return null
  return (
    <p class="pager">
      {after === undefined ? null : (
        <button type="button" class="small" onClick={() => onPage(undefined)}>
          {first}
        </button>
      )}{' '}
      {next === null ? null : (
        <button type="button" class="small" onClick={() => onPage(next)}>
          {further}
        </button>
      )}
    </p>
  )
}

/** A table that scrolls sideways where the page is narrow, by keyboard too. */
export function Table({ name, head, children }: Children & { name: string; head: readonly Column[] }) {
  return (
    <Scroll name={name}>
      <table>
        <caption class="hidden">{name}</caption>
        <thead>
          <tr>
            {head.map((column) => (
              <th key={String(column)} scope="col" class={typeof column === 'string' ? '' : 'number'}>
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </Scroll>
  )
}

/** What scrolls where it does not fit. No landmark: its section is one already. */
export function Scroll({ name, class: own = 'scroll', children }: Children & { name: string; class?: string }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard in every browser
    <div class={own} role="group" aria-label={name} tabIndex={0}>
      {children}
    </div>
  )
}

interface FieldProps {
  readonly name: string
  readonly label: string
  readonly value?: string | undefined
  readonly hint?: string
  readonly type?: 'text' | 'number' | 'password' | 'month'
  readonly isRequired?: boolean
  readonly options?: readonly (readonly [value: string, text: string])[]
}

/** An input or a choice with its label. */
export function Field({ name, label, value = '', hint, type = 'text', isRequired = false, options }: FieldProps) {
  const id = useId()
  return (
    <label htmlFor={id}>
      <span>
        {label}
        {hint === undefined ? null : <small> {hint}</small>}
      </span>
      {options === undefined ? (
        <input id={id} name={name} type={type} defaultValue={value} required={isRequired} autoComplete="off" />
      ) : (
        <select id={id} name={name}>
          {options.map(([option, text]) => (
            <option key={option} value={option} selected={option === value}>
              {text}
            </option>
          ))}
        </select>
      )}
    </label>
  )
}

/** Options of a choice that are shown as they are. */
export function choices(...values: readonly string[]) {
  return values.map((value) => [value, value] as const)
}

/** The texts of a form; empty ones are left out. */
export type Values = Readonly<Record<string, string | undefined>>

interface FormProps extends Children {
  readonly name: string
  readonly button: string
  readonly isRunning?: boolean
  readonly error?: string | undefined
  /** What the last submission made: the form is emptied, so that nobody presses again to be sure, and `done` is said. */
  readonly made?: unknown
  readonly done?: string | undefined
  /** Takes the focus when it appears. Default false. */
  readonly isEntered?: boolean
  onSubmit(values: Values): void
}

export function Form({
  name,
  button,
  isRunning = false,
  error,
  made,
  done,
  isEntered = false,
  onSubmit,
  children,
}: FormProps) {
  const form = useRef<HTMLFormElement>(null)
  useEffect(() => {
    if (made !== undefined) form.current?.reset()
  }, [made])
  useEffect(() => {
    if (isEntered) form.current?.querySelector('input')?.focus()
  }, [isEntered])
  const submit = (event: JSX.TargetedSubmitEvent<HTMLFormElement>): void => {
    event.preventDefault()
    const given = [...new FormData(event.currentTarget)].filter(
      ([, value]) => typeof value === 'string' && value !== '',
    )
    if (!isRunning) onSubmit(Object.fromEntries(given) as Values)
  }
  return (
    <form ref={form} aria-label={name} onSubmit={submit}>
      {children}
      {/* Not `disabled`, which would take the focus away. */}
      <button type="submit" aria-disabled={isRunning}>
        {isRunning ? 'One moment…' : button}
      </button>
      {made === undefined || done === undefined || isRunning ? null : (
        <p class="note" role="status">
          {done}
        </p>
      )}
      <Fault text={error} />
    </form>
  )
}

/** A button that asks once more before it does what cannot be taken back. The focus goes to the safe answer, and comes back. */
export function ConfirmButton({ label, question, onConfirm }: { label: string; question: string; onConfirm(): void }) {
  const [isAsked, setAsked] = useState(false)
  const next = useRef<HTMLButtonElement>(null)
  const isFirst = useRef(true)
  // Whether it is asked says which of the two buttons is there.
  useEffect(() => {
    if (!isFirst.current || isAsked) next.current?.focus()
    isFirst.current = false
  }, [isAsked])
  if (!isAsked)
    return (
      <button ref={next} type="button" class="small" onClick={() => setAsked(true)}>
        {label}
      </button>
    )
  return (
    <span class="confirm" role="alert">
      {question}{' '}
      <button
        type="button"
        class="small danger"
        onClick={() => {
          setAsked(false)
          onConfirm()
        }}
      >
        {label}
      </button>{' '}
      <button ref={next} type="button" class="small" onClick={() => setAsked(false)}>
        Keep
      </button>
    </span>
  )
}

/** Hides a form until it is wanted. */
export function Disclosure({ summary, children }: Children & { summary: string }) {
  return (
    <details>
      <summary>{summary}</summary>
      {children}
    </details>
  )
}
