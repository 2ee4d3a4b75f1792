import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { BUILD } from './built.mjs'
import { variantsOf } from './variants.mjs'

const SHOWN = 40

/** Measures one turn of each proxy under the profiler; prints the shares of its time and saves the profiles. */
export async function profileScenario({ lab, suite, scenario, options }) {
  await mkdir(options.profileFolder, { recursive: true })
  for (const proxy of variantsOf(suite.proxiesOf(scenario), options)) {
    if (proxy.missing?.() !== undefined) continue
    const prepared = await scenario.measurement.prepare({ lab, proxy, scenario, options })
    const turn = { lab, proxy, scenario, prepared, options: { ...options, isProfiling: true } }
    const { profile, cpuMicroseconds } = await scenario.measurement.measure(turn)
    await scenario.measurement.finish({ prepared })
    if (profile === undefined) continue
    const { node, build } = proxy
    const name = [scenario.name, proxy.name.replace('/', '-'), node?.version, build?.commit.slice(0, 9)]
    const file = join(options.profileFolder, `${name.filter(Boolean).join('-')}.cpuprofile`)
    await writeFile(file, JSON.stringify(profile))
    const title = [proxy.title, build && `at ${build.title}`, node && `on Node ${node.version}`]
      .filter(Boolean)
      .join(' ')
    console.log(`\n${scenario.title}: ${title}, ${cpuMicroseconds.toFixed(2)} ${scenario.unit} with the profiler on`)
    show(selfTimes(profile).slice(0, SHOWN), cpuMicroseconds)
    const lines = await hottestLines(profile, build?.folder ?? BUILD)
    if (lines.length > 0) console.log('lines of the package:')
    show(lines.slice(0, SHOWN), cpuMicroseconds)
  }
}

function show(rows, cpuMicroseconds) {
  for (const { share, place } of rows) {
    const percent = (share * 100).toFixed(1).padStart(5)
    console.log(`${(share * cpuMicroseconds).toFixed(3).padStart(9)}  ${percent} %  ${place}`)
  }
}

/** Share of the busy time that each line of the built package took, the greatest first. Inlined functions count at their own lines. */
async function hottestLines({ nodes }, folder) {
  const ticks = new Map()
  let busy = 0
  for (const { callFrame, positionTicks = [], hitCount } of nodes) {
    if (isIdle(callFrame)) continue
    busy += hitCount
    if (!callFrame.url.startsWith(folder)) continue
    for (const { line, ticks: count } of positionTicks) {
      const key = `${callFrame.url} ${line}`
      ticks.set(key, (ticks.get(key) ?? 0) + count)
    }
  }
  const texts = new Map()
  const rows = []
  for (const [key, count] of ticks) {
    const [url, line] = key.split(' ')
    if (!texts.has(url)) texts.set(url, (await readFile(new URL(url), 'utf8')).split('\n'))
    rows.push({ share: count / busy, place: (texts.get(url)[Number(line) - 1] ?? '').trim().slice(0, 120) })
  }
  return rows.sort((left, right) => right.share - left.share)
}

function isIdle({ functionName }) {
  return functionName === '(idle)' || functionName === '(root)'
}

/** Share of the busy time that each function took by itself, the greatest first. */
export function selfTimes({ nodes, samples, timeDeltas }) {
  const functions = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]))
  const times = new Map()
  let busy = 0
  for (const [index, id] of samples.entries()) {
    const callFrame = functions.get(id)
    const { functionName, url, lineNumber } = callFrame
    if (isIdle(callFrame)) continue
    const file = url.replace(/^.*?\/(?=(node_modules|dist|bench)\/)/, '')
    const place = `${functionName === '' ? '(anonymous)' : functionName} ${file}${file === '' ? '' : `:${lineNumber + 1}`}`
    times.set(place, (times.get(place) ?? 0) + timeDeltas[index])
    busy += timeDeltas[index]
  }
  return [...times]
    .map(([place, time]) => ({ place, share: time / busy }))
    .sort((left, right) => right.share - left.share)
}
