import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import type { Change, List, Read } from './api.ts'
import { exactMoney, hrefOf, money } from './format.ts'

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

export function Cards({ children }: Children) {
  return <dl class="cards">{children}</dl>
}

/** Hint for an empty list. */
export function Empty({ children }: Children) {
  return <p class="empty">{children}</p>
}

/** Hint for a list that a filter of the view has emptied. */
export function NoMatch({ view, children }: Children & { view: string }) {
  return (
    <>
      {children} <a href={hrefOf([view])}>Show all</a>
    </>
  )
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

/** Small button in a row or a heading. */
export function SmallButton({ onClick, isDisabled = false, children }: Children & ButtonProps) {
  return (
    <button type="button" class="small" disabled={isDisabled} onClick={onClick}>
      {children}
    </button>
  )
}

interface ButtonProps {
  readonly isDisabled?: boolean
  onClick(): void
}

/** Pages of a list: either each has a URL, or a function shows it. */
type PagerProps = {
  /** Cursor of this page, or `undefined` for the first page. */
  readonly after: string | undefined
  /** Labels of the links to the first page and to the next page. */
  readonly labels: readonly [first: string, next: string]
} & ({ href(after: string | undefined): string } | { onPage(after: string | undefined): void })

/** Links to other pages of a list; nothing if there is only one page. */
function Pager({ next, ...pages }: PagerProps & { readonly next: string | null }) {
  const { after, labels } = pages
  const link = (label: string, to: string | undefined) =>
    'href' in pages ? (
      <a href={pages.href(to)}>{label}</a>
    ) : (
      <SmallButton onClick={() => pages.onPage(to)}>{label}</SmallButton>
    )
  if (after === undefined && next === null) return null
  return (
    <p class="pager">
      {after === undefined ? null : link(labels[0], undefined)} {next === null ? null : link(labels[1], next)}
    </p>
  )
}

/** Column of a table: its title, the content of a row's cell, and the style of the cells. */
export type Column<Row> = readonly [
  title: string,
  cell: (row: Row) => ComponentChildren,
  style?: 'number' | 'wide' | 'name',
]

interface TableProps<Row extends { readonly id: string }> {
  readonly name: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly isTall?: boolean
}

/** Table that scrolls horizontally on narrow pages, also by keyboard. */
export function Table<Row extends { readonly id: string }>({ name, columns, rows, isTall = false }: TableProps<Row>) {
  return (
    // It is not a landmark, because its section is one.
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard in every browser
    <div class={isTall ? 'scroll tall' : 'scroll'} role="group" aria-label={name} tabIndex={0}>
      <table>
        <caption class="hidden">{name}</caption>
        <thead>
          <tr>
            {columns.map(([title, , style]) => (
              <th key={title} scope="col" class={style === 'number' ? style : ''}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.id}>
              {columns.map(([title, cell, style]) =>
                style === 'name' ? (
                  <th key={title} scope="row">
                    {cell(row)}
                  </th>
                ) : (
                  <td key={title} class={style}>
                    {cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

interface ListTableProps<Row extends { readonly id: string }> extends Omit<TableProps<Row>, 'rows'> {
  readonly of: Read<List<Row>>
  /** Hint for a list without rows. */
  readonly empty: ComponentChildren
  /** Pages of the list. If omitted, only the first page can be seen. */
  readonly pages?: PagerProps | undefined
}

/** Table of a list from the API, with its loading state, a hint if it is empty, and links to its other pages. */
export function ListTable<Row extends { readonly id: string }>({ of, empty, pages, ...table }: ListTableProps<Row>) {
  return (
    <Loaded of={of}>
      {({ data, next }) => (
        <>
          {data.length === 0 ? <Empty>{empty}</Empty> : <Table {...table} rows={data} />}
          {pages === undefined ? null : <Pager {...pages} next={next} />}
        </>
      )}
    </Loaded>
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
  /**
   * Change that the form makes. If it has a result, the form is cleared, so that nobody submits it again, and `done` is announced.
   */
  readonly change?: Partial<Omit<Change<unknown>, 'run'>>
  readonly done?: string | undefined
  /** Whether it takes the focus when it appears. Default false. */
  readonly isEntered?: boolean
  onSubmit(values: Values): void
}

export function Form({ name, button, change = {}, done, isEntered = false, onSubmit, children }: FormProps) {
  const { isRunning = false, error, made } = change
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

/** Returns a function that shows a view for the values of a form, which become the query of its URL. */
export function openView(view: string): (values: Values) => void {
  return (values) => {
    location.hash = hrefOf([view], values)
  }
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
  const columns: readonly Column<Step>[] = [
    ['time', ({ name }) => name, 'name'],
    ...series.map((name, place): Column<Step> => [name, ({ values }) => text(values[place] ?? 0)]),
  ]
  return (
    <figure>
      <figcaption>
        {title}
        <button type="button" class="small" aria-pressed={isTable} onClick={() => setTable(!isTable)}>
          {isTable ? 'Chart' : 'Table'}
          <span class="hidden"> of {title}</span>
        </button>
      </figcaption>
      {isTable ? (
        <Table isTall name={title} columns={columns} rows={steps.map((step) => ({ ...step, id: step.name }))} />
      ) : (
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
