import { useState } from 'preact/hooks'
import { Scroll } from './parts.tsx'

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
