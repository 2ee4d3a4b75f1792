import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import type { Read } from './api.ts'
import { exactMoney, money } from './format.ts'

type Children = { readonly children?: ComponentChildren }

/** Part of a view with a heading. */
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

/** Figure with its name. */
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

/** Hint for an empty list. */
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

/** Shows data, or its loading state. */
export function Loaded<Answer>({ of, children }: { of: Read<Answer>; children: (data: Answer) => ComponentChildren }) {
  return (
    <>
      <Fault text={of.error} />
      {of.data === undefined ? of.isLoading ? <p role="status">Loading…</p> : null : children(of.data)}
    </>
  )
}

/** Shows a state by word and colour. */
export function Badge({ kind, children }: Children & { kind: 'good' | 'bad' | 'warn' | 'plain' }) {
  return <span class={`badge ${kind}`}>{children}</span>
}

/** Title of a column. In a list, the title of a column of numbers. */
type Column = string | readonly [string]

interface PagerProps {
  /** Cursor of this page, or `undefined` for the first page. */
  readonly after: string | undefined
  /** Cursor of the next page, or `null` for the last page. */
  readonly next: string | null
  /** Labels of the links to the first page and to the next page. */
  readonly labels: readonly [first: string, next: string]
  onPage(after: string | undefined): void
}

/** Links to other pages of a list; nothing if there is only one page. */
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

/** Table that scrolls horizontally on narrow pages, also by keyboard. */
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

/** Container that scrolls its overflow. It is not a landmark, because its section is one. */
function Scroll({ name, class: own = 'scroll', children }: Children & { name: string; class?: string }) {
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

/** Input or choice with its label. */
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

/** Options of a choice that are displayed unchanged. */
export function choices(...values: readonly string[]) {
  return values.map((value) => [value, value] as const)
}

/** Strings of a form; empty ones are omitted. */
export type Values = Readonly<Record<string, string | undefined>>

interface FormProps extends Children {
  readonly name: string
  readonly button: string
  readonly isRunning?: boolean
  readonly error?: string | undefined
  /** Result of the last submission. The form is then cleared, so that nobody submits it again, and `done` is announced. */
  readonly made?: unknown
  readonly done?: string | undefined
  /** Whether it takes the focus when it appears. Default false. */
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

/** Button that asks for confirmation before an irreversible action. The focus moves to the safe answer, and back afterwards. */
export function ConfirmButton({ label, question, onConfirm }: { label: string; question: string; onConfirm(): void }) {
  const [isAsked, setAsked] = useState(false)
  const next = useRef<HTMLButtonElement>(null)
  const isFirst = useRef(true)
  // The confirmation state determines which of the two buttons exists.
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

/** Hides a form until it is opened. */
export function Disclosure({ summary, children }: Children & { summary: string }) {
  return (
    <details>
      <summary>{summary}</summary>
      {children}
    </details>
  )
}

/** Step in time with a value per series. */
export interface Step {
  readonly name: string
  readonly values: readonly number[]
}

interface ChartProps {
  readonly title: string
  readonly series: readonly string[]
  readonly steps: readonly Step[]
  readonly text: (value: number) => string
}

const WIDTH = 600
const HEIGHT = 120

/** Bars over time, with a table of the same data behind a button. Bars have titles, so that colour is never the only difference. */
export function Chart({ title, series, steps, text }: ChartProps) {
  const [isTable, setTable] = useState(false)
  const totals = steps.map(({ values }) => values.reduce((sum, value) => sum + value, 0))
  const highest = Math.max(...totals, 0)
  return (
    <figure>
      <figcaption>
        {title}
        <button type="button" class="small" aria-pressed={isTable} onClick={() => setTable(!isTable)}>
          {isTable ? 'Chart' : 'Table'}
          <span class="hidden"> of {title}</span>
        </button>
      </figcaption>
      {isTable ? <ChartTable title={title} series={series} steps={steps} text={text} /> : null}
      {isTable ? null : (
        <svg
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={summaryOf(title, totals, text)}
        >
          <line x1="0" x2={WIDTH} y1={HEIGHT - 0.5} y2={HEIGHT - 0.5} class="axis" />
          {steps.map((step, index) => (
            <Bars
              key={step.name}
              step={step}
              series={series}
              text={text}
              index={index}
              count={steps.length}
              highest={highest}
            />
          ))}
        </svg>
      )}
      <div class="ends" aria-hidden="true">
        <span>{steps[0]?.name}</span>
        <span>highest {text(highest)}</span>
        <span>{steps.at(-1)?.name}</span>
      </div>
      {series.length > 1 ? (
        <ul class="legend">
          {series.map((name, index) => (
            <li key={name} class={`series-${index}`}>
              {name}
            </li>
          ))}
        </ul>
      ) : null}
    </figure>
  )
}

function summaryOf(title: string, totals: readonly number[], text: (value: number) => string): string {
  const highest = Math.max(...totals, 0)
  return `${title}: ${totals.length} steps, highest ${text(highest)}, last ${text(totals.at(-1) ?? 0)}`
}

type BarsProps = { step: Step; index: number; count: number; highest: number } & Pick<ChartProps, 'series' | 'text'>

function Bars({ step, series, text, index, count, highest }: BarsProps) {
  const width = WIDTH / count
  let top = HEIGHT
  return (
    <g>
      <title>{`${step.name}: ${series.map((name, place) => `${name} ${text(step.values[place] ?? 0)}`).join(', ')}`}</title>
      <rect x={index * width} y={0} width={width} height={HEIGHT} class="hover" />
      {step.values.map((value, place) => {
        const height = highest === 0 ? 0 : (value / highest) * (HEIGHT - 4)
        top -= height
        return (
          <rect
            key={series[place]}
            x={index * width + width * 0.1}
            y={top}
            width={width * 0.8}
            height={height}
            class={`series-${place}`}
          />
        )
      })}
    </g>
  )
}

function ChartTable({ title, series, steps, text }: ChartProps) {
  return (
    <Scroll name={title} class="scroll tall">
      <table>
        <caption class="hidden">{title}</caption>
        <thead>
          <tr>
            <th scope="col">time</th>
            {series.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {steps.map((step) => (
            <tr key={step.name}>
              <th scope="row">{step.name}</th>
              {step.values.map((value, place) => (
                <td key={series[place]}>{text(value)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  )
}
