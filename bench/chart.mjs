// Draws `bench/results.json` as docs/public/benchmark.svg: node bench/chart.mjs
import { writeFile } from 'node:fs/promises'
import { chartSvg } from './chart-svg.mjs'
import { name as ownName } from './proxies/gateway.mjs'
import { readNumbers } from './results-data.mjs'

const FILE = new URL('../docs/public/benchmark.svg', import.meta.url)

/** Writes the chart of the last saved comparison with peers. */
export async function drawChart() {
  await writeFile(FILE, chartSvg(await readNumbers(), { ownName }))
}

if (process.argv[1] === import.meta.filename) await drawChart()
