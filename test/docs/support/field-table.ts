import { z } from 'zod'
import { firstTable, readPage, section } from './markdown.ts'

/** Treatment of a field, as the first words of a cell name it. */
export type Verdict = 'passed' | 'mapped' | 'filled in' | 'dropped' | 'refused'

/** The table of one request on the page of fields. */
export interface FieldTable {
  /** Names of the fields, in order. */
  readonly fields: readonly string[]
  /** Fields whose cell in the column "specified" says yes. */
  readonly specified: readonly string[]
  /** The cells of a column by field. */
  column(name: string): ReadonlyMap<string, string>
}

const page = readPage('docs/spec-fields.md')

/**
 * Reads the table below a heading.
 * @throws Error for a cell of "specified" that is neither yes nor no.
 */
export function fieldTable(heading: string): FieldTable {
  const [head = [], ...rows] = firstTable(section(page, heading))
  const specified = rows.filter((row) => isYes(row[head.indexOf('specified')])).map(([field = '']) => field)
  return {
    fields: rows.map(([field = '']) => field),
    specified,
    column(name) {
      const index = head.indexOf(name)
      if (index < 1) throw new Error(`the table of ${heading} has no column ${name}`)
      return new Map(rows.map((row) => [row[0] ?? '', row[index] ?? '']))
    },
  }
}

/**
 * The verdict of a cell.
 * @throws Error for a cell that begins with something else.
 */
export function verdictOf(cell: string | undefined): Verdict {
  const found = /^(?:passed|mapped|filled in|dropped|refused)\b/.exec(cell ?? '')?.[0]
  if (found === undefined) throw new Error(`${JSON.stringify(cell)} begins with no verdict`)
  return found as Verdict
}

/** The fields that a schema names, those of objects inside as `input.messages`. */
export function schemaFields(schema: z.ZodType): string[] {
  return pathsOf(z.toJSONSchema(schema) as JsonSchema, '')
}

interface JsonSchema {
  readonly properties?: Readonly<Record<string, JsonSchema>>
}

function pathsOf({ properties = {} }: JsonSchema, prefix: string): string[] {
  return Object.entries(properties).flatMap(([name, inner]) => [prefix + name, ...pathsOf(inner, `${prefix}${name}.`)])
}

function isYes(cell: string | undefined): boolean {
  if (cell !== 'yes' && cell !== 'no' && cell !== undefined) throw new Error(`specified: ${cell}`)
  return cell === 'yes'
}
