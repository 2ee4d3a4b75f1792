import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { validate } from 'dockerfile-utils'
import { describe, expect, test } from 'vitest'
import { parseAllDocuments, parseDocument } from 'yaml'
import { readServeSettings } from '../../src/cli/serve-settings.ts'
import { ENDPOINTS } from '../../src/endpoints/registry.ts'
import { matchRoute } from '../../src/gateway/routes.ts'
import { EndpointTable } from '../../src/pipeline/pipeline-context.ts'
import { ROOT } from './support/markdown.ts'

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')
const manifest = JSON.parse(read('package.json')) as {
  version: string
  bin: { signalbox: string }
  peerDependencies: Record<string, string>
}

/** The longest time that `serve` gives requests in progress after SIGTERM, in seconds. */
const DRAIN_SECONDS = 30

/** An object of a YAML document, read as the tests need it. */
type Node = Record<string, never>

const endpoints = new EndpointTable(ENDPOINTS)
const isRoute = (path: string): boolean => {
  const match = matchRoute(endpoints, 'GET', path)
  return match !== undefined && 'target' in match
}

describe('the Dockerfile', () => {
  const text = read('Dockerfile')
  const lines = text.split('\n')
  const last = text.slice(text.lastIndexOf('\nFROM '))

  test('has no fault that a linter of Dockerfiles finds', () => {
    expect(validate(text).map(({ message, range }) => `${range.start.line + 1}: ${message}`)).toEqual([])
    expect(validate('FROM node\nENTRYPOINT node\nRUNN x').length).toBeGreaterThan(0)
  })

  test('ends in an image with a fixed base that runs the command of the package, and not as root', () => {
    for (const line of lines.filter((candidate) => candidate.startsWith('FROM ')))
      expect(line).toMatch(/^FROM node:\d+-slim\b/)
    expect(/^USER (.*)$/m.exec(last)?.[1]).toBe('1000:1000')
    expect(last).toContain(`"/app/node_modules/signalbox/${manifest.bin.signalbox.replace(/^\.\//, '')}"`)
    const probed = /\$\{process\.env\.PORT\}(\/\w+)/.exec(last)?.[1]
    expect(isRoute(probed ?? '')).toBe(true)
  })

  test('copies what is there, and installs every package that a setting of serve may need', () => {
    const copied = lines.flatMap((line) => /^COPY (?!--from)(.+) \S+$/.exec(line)?.[1]?.split(' ') ?? [])
    expect(copied.length).toBeGreaterThan(1)
    for (const path of copied) expect(existsSync(join(ROOT, path)), path).toBe(true)
    // Only hosts that import the library trace.
    const peers = Object.keys(manifest.peerDependencies).filter((name) => name !== '@opentelemetry/api')
    for (const name of [...peers, 'ioredis']) expect(text).toContain(` ${name}@`)
  })

  test('sets variables that serve accepts', () => {
    const block = /^ENV ((?:.*\\\n)*.*)$/m.exec(last)?.[1] ?? ''
    const variables = Object.fromEntries(
      [...block.matchAll(/([A-Z_]+)=(\S+)/g)].map(([, name, value]) => [name, value]),
    )
    const settings = readServeSettings(variables)

    expect(settings).toMatchObject({ host: '0.0.0.0', port: 8787, log: 'json', store: { path: '/data/signalbox.db' } })
  })
})

describe('compose.yaml', () => {
  const document = parseDocument(read('compose.yaml'), { strict: true })
  const { services, volumes } = document.toJS() as { services: Record<string, Node>; volumes: Node }
  const gateway = services['gateway'] as unknown as {
    environment: Record<string, string>
    depends_on: Record<string, { condition: string }>
    read_only: boolean
    cap_drop: string[]
    stop_grace_period: string
  }

  test('is valid YAML, without a key given twice', () => {
    expect([document.errors, document.warnings]).toEqual([[], []])
  })

  test('gives the gateway variables that serve accepts, and nothing to write to', () => {
    const filled = Object.entries(gateway.environment).map(([name, value]) => [
      name,
      value.replace(/\$\{\w+:-\}/g, '').replace(/\$\{\w+:\?[^}]*\}/g, 'secret'),
    ])
    const settings = readServeSettings(Object.fromEntries(filled))

    expect(settings.store).toEqual({ kind: 'postgres', url: 'postgres://signalbox:secret@postgres:5432/signalbox' })
    expect(settings.redisUrl).toBe('redis://redis:6379')
    expect(gateway).toMatchObject({ read_only: true, cap_drop: ['ALL'] })
    expect(Number.parseInt(gateway.stop_grace_period, 10)).toBeGreaterThan(
      DRAIN_SECONDS + settings.shutdownDelayMs / 1000,
    )
  })

  test('waits for services that are there and have a health check', () => {
    const names = Object.keys(gateway.depends_on)
    expect(names).toEqual(['postgres', 'redis'])
    for (const name of names) {
      expect(gateway.depends_on[name]?.condition).toBe('service_healthy')
      expect(services[name]).toMatchObject({
        healthcheck: { test: expect.any(Array) },
        image: expect.stringMatching(/:\d+$/),
      })
    }
    expect(Object.keys(volumes)).toEqual(['postgres'])
  })
})

describe('the manifests for Kubernetes', () => {
  const documents = parseAllDocuments(read('examples/deploy/kubernetes.yaml'), { strict: true })
  const of = <Kind>(kind: string): Kind =>
    (documents as { toJS(): { kind: string } }[]).map((one) => one.toJS()).find((one) => one.kind === kind) as Kind
  interface Probe {
    readonly httpGet: { readonly path: string; readonly port: string }
    readonly periodSeconds: number
    readonly failureThreshold: number
  }
  interface Container {
    readonly image: string
    readonly ports: readonly { readonly name: string; readonly containerPort: number }[]
    readonly env: readonly {
      readonly name: string
      readonly value?: string
      readonly valueFrom?: { readonly secretKeyRef: { readonly name: string; readonly key: string } }
    }[]
    readonly startupProbe: Probe
    readonly readinessProbe: Probe
    readonly livenessProbe: Probe
    readonly securityContext: object
  }
  type Labels = Record<string, string>
  const secret = of<{ metadata: { name: string }; stringData: Record<string, string> }>('Secret')
  const deployment = of<{
    spec: {
      replicas: number
      selector: { matchLabels: Labels }
      strategy: { rollingUpdate: { maxUnavailable: number } }
      template: {
        metadata: { labels: Labels }
        spec: { containers: Container[]; terminationGracePeriodSeconds: number; securityContext: object }
      }
    }
  }>('Deployment')
  const service = of<{ spec: { selector: Labels; ports: { targetPort: string }[] } }>('Service')
  const budget = of<{ spec: { selector: { matchLabels: Labels } } }>('PodDisruptionBudget')
  const pod = deployment.spec.template.spec
  const [container] = pod.containers
  const environment = Object.fromEntries(
    (container?.env ?? []).map(({ name, value, valueFrom }) => [
      name,
      value ?? secret.stringData[valueFrom?.secretKeyRef.key ?? ''],
    ]),
  )

  test('are valid YAML, without a key given twice', () => {
    expect(documents).toHaveLength(4)
    expect((documents as { errors: unknown[] }[]).flatMap(({ errors }) => errors)).toEqual([])
  })

  test('select the pods that they make', () => {
    const { labels } = deployment.spec.template.metadata
    for (const selector of [
      deployment.spec.selector.matchLabels,
      service.spec.selector,
      budget.spec.selector.matchLabels,
    ])
      expect(labels).toMatchObject(selector)
    expect(container?.ports.map(({ name }) => name)).toContain(service.spec.ports[0]?.targetPort)
  })

  test('give variables that serve accepts, from a secret that is there', () => {
    for (const { valueFrom } of container?.env ?? []) {
      if (valueFrom === undefined) continue
      expect(valueFrom.secretKeyRef.name).toBe(secret.metadata.name)
      expect(secret.stringData).toHaveProperty([valueFrom.secretKeyRef.key])
    }
    const settings = readServeSettings(environment)
    expect(settings).toMatchObject({ expectedInstances: deployment.spec.replicas, store: { kind: 'postgres' } })
    expect(settings.port).toBe(container?.ports[0]?.containerPort)
  })

  test('probe paths that are there: readiness decides about requests, and only liveness about restarts', () => {
    for (const probe of [container?.startupProbe, container?.readinessProbe])
      expect(probe?.httpGet.path).toBe('/readyz')
    expect(container?.livenessProbe.httpGet.path).toBe('/livez')
    for (const path of ['/readyz', '/livez']) expect(isRoute(path)).toBe(true)
  })

  test('leave time to be noticed as not ready, and then to end what is in progress', () => {
    const delaySeconds = readServeSettings(environment).shutdownDelayMs / 1000
    const { periodSeconds = 0, failureThreshold = 0 } = container?.readinessProbe ?? {}

    expect(delaySeconds).toBeGreaterThan(periodSeconds * failureThreshold)
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(delaySeconds + DRAIN_SECONDS)
    expect(deployment.spec.strategy.rollingUpdate.maxUnavailable).toBe(0)
  })

  test('run without root, privileges and a writable file system', () => {
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000 })
    expect(container?.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
  })
})
