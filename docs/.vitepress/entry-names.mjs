import { readFileSync } from 'node:fs'
import { Converter } from 'typedoc'

const { compilerOptions } = JSON.parse(readFileSync(new URL('../../tsconfig.json', import.meta.url), 'utf8'))

/** Entries of the package, by the names that TypeDoc gives their sources. */
const NAMES = new Map(
  Object.entries(compilerOptions.paths).map(([specifier, [source]]) => [
    source
      .replace(/^\.\/src\//, '')
      .replace(/\.ts$/, '')
      .replace(/\/index$/, ''),
    specifier,
  ]),
)

/** Names the modules of the reference as hosts import them. */
export function load(app) {
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const entry of project.children ?? []) entry.name = NAMES.get(entry.name) ?? entry.name
  })
}
