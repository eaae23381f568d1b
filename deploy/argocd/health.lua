-- Health of a RuntimeRollout for Argo CD, in the ConfigMap argocd-cm under
-- resource.customizations.health.operator.kyma-project.io_RuntimeRollout.
local health = {status = "Progressing", message = "Waiting for the roll-out to be observed"}
local status = obj.status
if status == nil or status.conditions == nil then return health end
if status.observedGeneration ~= nil and obj.metadata.generation ~= nil
    and status.observedGeneration < obj.metadata.generation then
  return health
end
local conditions = {}
for _, condition in ipairs(status.conditions) do conditions[condition.type] = condition end
local function is(kind)
  return conditions[kind] ~= nil and conditions[kind].status == "True"
end
local ready = conditions["Ready"]
if ready ~= nil then health.message = ready.reason .. ": " .. ready.message end
if is("Stalled") then
  health.status = "Degraded"
  if status.message ~= nil then health.message = health.message .. "; " .. status.message end
elseif obj.spec ~= nil and obj.spec.paused == true then
  health.status = "Suspended"
elseif is("Ready") then
  health.status = "Healthy"
elseif not is("Reconciling") then
  health.status = "Degraded"  -- some runtimes were set aside
end
return health
